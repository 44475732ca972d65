"""A check and its outcome: what `memctl verify` and `memctl doctor` are made of."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import msgspec

from memctl.domain.support.errors import MemctlError

Result = Literal["ok", "gap", "skipped"]

NAMED = 20
"""How many findings of a check are named."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One check. `counted` says in a few words what was looked at, or why it was not; `found` names what is wrong,
    `more` how many there are beyond those; `advice` says what to do about it."""

    part: str
    name: str
    result: Result
    counted: str = ""
    found: tuple[str, ...] = ()
    more: int = 0
    advice: str = ""
    numbers: dict[str, int] = {}


def check(
    part: str, name: str, counted: str, found: Iterable[object] = (), *, total: int | None = None, advice: str = "",
    **numbers: int,
) -> Check:  # fmt: skip
    """A check that is ok where nothing was found. `total` counts the findings where `found` does not hold them all."""
    named = [str(item) for item in found]
    total = len(named) if total is None else total
    return Check(
        part=part,
        name=name,
        result="gap" if total else "ok",
        counted=counted,
        found=tuple(named[:NAMED]),
        more=total - len(named[:NAMED]),
        advice=advice if total else "",
        numbers=numbers,
    )


def skipped(part: str, name: str, why: str) -> Check:
    return Check(part=part, name=name, result="skipped", counted=why)


def attempted(part: str, checks: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    """Those checks; and one more that is a gap where they could not be carried through, because a server is out of
    reach or its files cannot be read."""
    import psycopg
    from redis import RedisError

    try:
        yield from checks()
    except (MemctlError, psycopg.Error, RedisError, OSError) as problem:
        yield Check(
            part=part,
            name=part,
            result="gap",
            counted="could not be looked at",
            found=(" ".join(str(problem).split()),),
            advice=getattr(problem, "hint", None) or "mend that, and run this again",
        )


def as_json(checks: list[Check]) -> list[dict[str, Any]]:
    """Checks as `--json` prints them."""
    return [msgspec.to_builtins(one) for one in checks]
