"""Warnings before commands run: how many failures of a known kind they would have met, and how many were in vain.

All shell commands of the sessions in order of time, memory as it was then. Which failures count as met before is told
by their words alone (tests/eval/commands.py). The rules were made looking at the first set.
"""

from __future__ import annotations

from collections.abc import Iterator

from commands import Ran, replay
from figures import Figure, Missing, share
from sessions import Data, unseen


def measure(data: Data) -> Iterator[Figure]:
    if not data.has_sessions:
        raise Missing("there are no sessions (agent-sessions.tar.xz)")
    yield from _figures("tuned", list(replay(data.streams, data.facts)))
    with unseen(data) as second:
        if second is not None:
            yield from _figures("unseen", list(replay(second.streams, second.facts)))


def _figures(which: str, ran: list[Ran]) -> Iterator[Figure]:
    known = [each for each in ran if each.met and each.form]
    calls = [each for each in known if each.wrong]
    said = [each for each in ran if each.said]
    right = sum(each.failed for each in said)
    yield Figure(f"{which}: known failures warned of", share(_warned(known), len(known)), len(known), 0.5)
    yield Figure(f"{which}: of them, those of the call itself", share(_warned(calls), len(calls)), len(calls))
    yield Figure(f"{which}: warnings that came true", share(right, len(said)), len(said), 0.6)
    in_vain = share(len(said) - right, len(ran))
    yield Figure(f"{which}: warnings in vain, by command", in_vain, len(ran), 0.01, at_most=True)


def _warned(ran: list[Ran]) -> int:
    return sum(bool(each.said) for each in ran)
