"""What somebody says of themselves, which is not the team's."""

from memctl.domain.support import patterns

_OF_A_PERSON = ("profile", "expertise")
"""Kinds of claims that are of a person, in whatever words."""
_SAYS_I = patterns.compile(
    r"\b[Mm]e\b|\b[Mm]yself\b|\b(?:[Mm]y|MY) +\w|\b[Mm]ine (?:is|are)\b|\b(?:is|are) mine\b|"
    r"(?:^|\s)(?:나는|난|저는|전|제가|내가|내|제)\s|\b[Ii]['’](?i:m|ve|d|ll)\b|"
    r"\bi (?:always|am|can|do|feel|find|had|hate|have|like|love|need|never|often|prefer|think|use|usually|want|was|"
    r"work|would)\b|(?:^|[.!?;] *|\b(?:as|because|but|if|so|that|when|while),? )i [a-z]"
)
_I = patterns.compile(r"\bI(?:[ ,]|$)")
_NUMBERS = patterns.compile(
    r"\b(?:appendix|category|chapter|class|group|layer|level|mark|option|part|phase|section|stage|step|table|tier|type|"
    r"volume|war) $",
    patterns.I,
)
"""What stands before an I that is a number."""


def is_personal(text: str, kind: str = "") -> bool:
    """Whether a claim of that kind, in those words, is of whoever says it."""
    if kind in _OF_A_PERSON or _SAYS_I.search(text):
        return True
    return any(_NUMBERS.search(text[: each.start()]) is None for each in _I.finditer(text))
