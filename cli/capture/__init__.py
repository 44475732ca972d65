"""Verbs by which sessions come in: hooks, transcripts, imports, and what installs or silences them."""
