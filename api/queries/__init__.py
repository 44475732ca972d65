"""Questions about what memory holds, one module for each kind of thing."""
