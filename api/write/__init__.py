"""The way in: hooks, transcripts, commands, imports and relays, all through one writer of events."""
