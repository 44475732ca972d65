"""What edits do to code, the rules they show, and the libraries, services and people that code names."""
