"""Moving a space from one database to another."""
