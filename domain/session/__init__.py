"""Stage 1: the fold of one session, from its events to facts."""
