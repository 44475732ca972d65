"""Erasing: what goes, what follows from it, and the proof that nothing of it is found."""
