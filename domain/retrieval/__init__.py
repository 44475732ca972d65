"""What a query asks for, how its candidates are ranked, and how good a ranking is."""
