"""What one file of a team's holds is known by: the folder, what two wordings have in common, and the words."""

from memctl.domain.events.event import derived_of
from memctl.domain.events.facts import quote_hash

KEY = "team/"
"""How the dedupe keys begin of what comes in from a team's files."""


def claim_entry(kind: str, polarity: int, canonical: str) -> str:
    """Id of a claim in a team's files, equal for all its wordings."""
    return _id("claims", kind, str(polarity), canonical)


def decision_entry(text: str) -> str:
    """Id of a decision in a team's files."""
    return _id("decisions", text)


def lesson_entry(text: str) -> str:
    """Id of a strategy in a team's files."""
    return _id("strategies", text)


def lesson_text(title: str, description: str, content: str) -> str:
    """What of a lesson stands in its file."""
    return content or description or title


def key_of(entry: str, text: str) -> str:
    """The dedupe key of an entry that comes in with these words."""
    return f"{KEY}{entry}/{quote_hash(text.strip())}"


def _id(folder: str, *parts: str) -> str:
    return derived_of("team", folder, *parts)
