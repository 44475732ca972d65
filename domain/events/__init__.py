"""What may be recorded: events with their payloads, commands, the facts derived from them, and their order."""
