"""What is believed: memories, how claims graduate, and what many memories show together."""
