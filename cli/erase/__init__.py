"""Verbs that erase, and that take a statement back."""
