"""How everything is: `status`, `doctor`, `verify`, and what waits for a person."""
