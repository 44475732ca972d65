"""Parameters that many routes have."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import Query
from pydantic import AfterValidator, BeforeValidator, StrictBool, WithJsonSchema

from memctl.api.reading.questions import LONGEST_PLACE
from memctl.domain.events.event import Micros
from memctl.domain.support import patterns

_DAY = patterns.compile(r"\d{4}-\d\d-\d\d")


def _written(moment: object) -> object:
    """A moment as people write it; a bare number, which would be taken for seconds since 1970, is a mistake."""
    if moment is None or isinstance(moment, datetime) or (isinstance(moment, str) and _DAY.match(moment)):
        return moment
    raise ValueError("a moment is written as 2026-03-01 or 2026-03-01T14:30+01:00; UTC where no zone is given")


Iso = Annotated[
    datetime | None,
    BeforeValidator(_written),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "format": "date-time"},
                {"type": "string", "format": "date"},
                {"type": "null"},
            ]
        }
    ),
]
"""A moment in ISO 8601; UTC where no zone is given."""


def _a_number(given: object) -> object:
    if isinstance(given, (str, bool)):
        raise ValueError("a number is wanted")
    return given


Number = Annotated[int, BeforeValidator(_a_number)]
Flag = StrictBool
"""A whole number, and a truth value, of a body: a text that reads as one is none."""


def _in_digits(given: object) -> object:
    if isinstance(given, str) and not (given.isascii() and given.isdigit()):
        raise ValueError("a whole number is wanted, in digits")
    return given


IN_DIGITS = BeforeValidator(_in_digits)
"""Of a whole number of a query or a path: `5.0` and `1_000` are none. It stands last, behind the bounds."""


def _without_nul(given: object) -> object:
    if isinstance(given, str) and "\0" in given:
        raise ValueError("a text has no NUL")
    return given


WITHOUT_NUL = BeforeValidator(_without_nul)
"""Of a text of a query or a path: Postgres takes none with a NUL."""

Project = Annotated[
    str | None,
    Query(
        max_length=LONGEST_PLACE,
        description="A project's name, id, remote, or a path in it; `*` for all.",
        examples=["checkout", "*"],
    ),
]
Anywhere = Annotated[bool, Query(description="Ask all projects where memory knows none at `here`.")]
Here = Annotated[
    str | None,
    Query(
        max_length=LONGEST_PLACE,
        description="Where the caller stands, used where no project is named: an absolute path.",
    ),
]


def micros(at: datetime | None) -> Micros | None:
    """A moment in microseconds since 1970."""
    if at is None:
        return None
    whole = at if at.tzinfo else at.replace(tzinfo=UTC)
    return Micros((whole - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1))


Moment = Annotated[
    Iso, AfterValidator(micros), Query(description="ISO 8601; UTC where no zone is given.", examples=["2026-03-01"])
]
"""A moment of a query, in microseconds."""
