"""Verbs that ask memory, and those that record what a person or an agent states."""
