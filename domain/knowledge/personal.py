"""What somebody says of themselves, which is not the team's."""

from memctl.domain.support import patterns

_OF_A_PERSON = ("profile", "expertise")
"""Kinds of claims that are of a person, in whatever words."""
_SAYS_I = patterns.compile(
    r"\b[Mm]e\b|\b[Mm]yself\b|\b(?:[Mm]y|MY) +\w|\b[Mm]ine (?:is|are)\b|\b(?:is|are) mine\b|"
    r"(?:^|\s)(?:나는|난|저는|전|제가|내가|내|제)\s|\b[Ii]['’](?i:m|ve|d|ll)\b|"
    r"\bi (?:always|am|can|do|feel|find|had|hate|have|like|love|need|never|often|prefer|think|use|usually|want|was|"
    r"work|would)\b|(?:\bI|(?:^|[.!?;] *)i) +([A-Za-z]+)"
)
_IS_NO_VERB = ("and", "for", "in", "is", "of", "on", "or", "to")
"""What stands behind an I that is a number or a name."""


def is_personal(text: str, kind: str = "") -> bool:
    """Whether a claim of that kind, in those words, is of whoever says it."""
    return kind in _OF_A_PERSON or any((each[1] or "").lower() not in _IS_NO_VERB for each in _SAYS_I.finditer(text))
