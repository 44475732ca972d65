"""What somebody says of themselves, which is not the team's."""

from memctl.domain.support import patterns

_OF_A_PERSON = ("profile", "expertise")
"""Kinds of claims that are of a person, in whatever words."""
_SAYS_I = patterns.compile(r"\b(?:[Ii]|[Mm]e|[Mm]y|[Mm]ine|[Mm]yself)\b|(?:^|\s)(?:나는|난|저는|전|제가|내가|내|제)\s")


def is_personal(text: str, kind: str = "") -> bool:
    """Whether a claim of that kind, in those words, is of whoever says it."""
    return kind in _OF_A_PERSON or _SAYS_I.search(text) is not None
