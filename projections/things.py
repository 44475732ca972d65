"""What people and processors name by its id, and the read models that its rows are of.

Rows of others gather what was said about such things, or bear names that people choose: the removal of such a row
says nothing about what has its key.
"""

THINGS = {
    "memory": "memories", "episode": "episodes", "bug": "bug_patterns", "insight": "insights",
    "knowledge": "verified_knowledge", "task": "tasks", "strategy": "strategies", "command": "known_commands",
    "error": "met_errors",
}  # fmt: skip
"""Read models by the word for one of their rows."""

NAMED = frozenset((*THINGS.values(), "sessions", "locations"))
"""Read models of which a row's key stands for something: what names it is about that, and goes with it."""
