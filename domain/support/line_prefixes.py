"""What logs and `git blame` put before each line, as patterns of bytes: what redaction and forgetting read past."""

_CLOCK = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?"
_MOMENT = rf"(?:[0-9]{{4}}[-/][0-9]{{2}}[-/][0-9]{{2}}[T ])?{_CLOCK}(?: ?Z| ?[+-][0-9]{{2}}:?[0-9]{{2}})?"
LOGGED = (
    rf"(?:\[{_MOMENT}\]|{_MOMENT}|[A-Z][a-z]{{2}} [ 0-9][0-9] {_CLOCK} \S+ [^\s:]+:)[ \t]"
    r"(?:\[?(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|stdout|stderr)\]?:?(?: [FP])?[ \t])?"
)
"""A moment, of a journal with a host and a program, and a level."""

BLAMED = r"\^?[0-9a-f]{7,40} (?:[^\s()]+ +)?\([^()\n]*[0-9]{4}-[0-9]{2}-[0-9]{2} [^()\n]*[0-9]\) ?"
"""A commit, perhaps its file, who wrote the line, when, and its number."""
