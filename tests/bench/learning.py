"""What learning costs: the time of its rules and folds, by thread's clock, over the real sessions.

    python tests/bench/learning.py [FOLDER]

Stage 1 is derived whole; the rules are timed where it calls them. The folds of stage 2 take what was derived, and as
many recalls and ratings as there are pieces of work, which published sessions do not hold.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "eval")]

from sessions import FOLDER, Data  # noqa: E402

from memctl.domain.events.facts import Episode, Fact, MemoriesFollowed, StrategyShown, fact_id  # noqa: E402
from memctl.domain.session import episodes, work  # noqa: E402
from memctl.domain.session.episode_outcomes import EpisodeOutcomes  # noqa: E402
from memctl.projections.kernel import Projection, projections  # noqa: E402

RULES: tuple[tuple[Any, str, str], ...] = (
    (episodes, "verdict_of", "verdict by rule"),
    (work, "of_refusal", "strategies: what a hook refuses"),
    (work, "of_check", "strategies: a checker's rule"),
    (work, "of_gate", "strategies: a check that refuses"),
    (work, "steps_of", "strategies: what passed"),
    (work, "of_commit", "strategies: before a commit"),
    (work, "of_one_test", "strategies: one test alone"),
    (work, "of_machine", "strategies: this machine's shell"),
    (EpisodeOutcomes, "learnt", "strategies: told once"),
)
"""Where stage 1 calls each rule. (What the verdict looks at is collected along with everything else.)"""


class Clock:
    """Nanoseconds spent in functions, by name, and how often they were called."""

    def __init__(self) -> None:
        self.spent: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()

    def timed(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        def timing(*args: Any, **kwargs: Any) -> Any:
            began = time.thread_time_ns()
            try:
                return function(*args, **kwargs)
            finally:
                self.spent[name] += time.thread_time_ns() - began
                self.calls[name] += 1

        return timing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="a folder of transcripts, in place of the published ones")
    given = parser.parse_args()
    data = Data(FOLDER, given.folder)
    count = sum(len(events) for events in data.streams.values())
    clock = Clock()
    for owner, function, name in RULES:
        setattr(owner, function, clock.timed(getattr(owner, function), name))
    began = time.thread_time_ns()
    facts = [fact for of_one in data.facts.values() for fact in of_one]
    whole = time.thread_time_ns() - began
    shown = [fact for fact in facts if isinstance(fact, StrategyShown)]
    followed = [_followed(fact, shown) for fact in facts if isinstance(fact, Episode)]
    _fold(clock, "strategies", shown)
    _fold(clock, "memory_feedback", followed)
    print(f"{count:,} events, {len(facts):,} facts; stage 1's rules altogether {whole / count / 1e3:.1f} µs an event")
    print(f"{'':<36} {'calls':>7} {'µs a call':>10} {'µs an event':>12}")
    for name, spent in clock.spent.items():
        print(
            f"{name:<36} {clock.calls[name]:>7,} {spent / clock.calls[name] / 1e3:>10.1f} {spent / count / 1e3:>12.2f}"
        )
    print(f"{'together':<36} {'':>7} {'':>10} {clock.spent.total() / count / 1e3:>12.2f}")


def _followed(episode: Episode, shown: list[StrategyShown]) -> MemoriesFollowed:
    """A piece of work in which three memories were told."""
    names = (*(f"strategy-{len(shown) % 7}-{n}" for n in range(2)), "pinned")
    return MemoriesFollowed(
        id=fact_id(episode.stream, "memories_followed", str(episode.id)), stream=episode.stream,
        occurred_at=episode.occurred_at, location=episode.location, memories=names, outcome=episode.outcome,
    )  # fmt: skip


def _fold(clock: Clock, name: str, facts: list[Any]) -> None:
    p: Projection[Any] = next(each for each in projections(2) if each.name == name)
    rows: dict[str, Any] = {}

    def fold(fact: Fact) -> None:
        for key in p.keys(fact):
            rows[key] = p.fold(rows.get(key), fact)

    timed = clock.timed(fold, f"fold of {name}")
    for fact in facts:
        timed(fact)


if __name__ == "__main__":
    main()
