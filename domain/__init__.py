"""What may happen, and how it is judged: events, commands, facts and pure rules. No I/O, no clock."""
