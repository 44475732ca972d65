"""Guidance for a task from what became of tasks like it, and what to do about an error from what is known of it. Pure:
what was found in, advice out."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

Complexity = Literal["low", "medium", "high"]

MOST_LINES = 5
"""Things to try, and things to avoid, at most."""

BASE, PRECEDENT, PATTERN = 0.5, 0.2, 0.3
"""Seed 000: confidence starts at 0.5, gains 0.2 by a success, and up to 0.3 by a bug pattern as far as it matches."""

NO_PRECEDENT = 0.2
"""Confidence where nothing like the task is known: what is returned then holds for any task here."""


class Precedent(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier task that is like this one. `outcome` as episodes have it; `complexity` in 0 to 1."""

    memory: str
    outcome: str
    approach: str
    tips: tuple[str, ...] = ()
    gotchas: tuple[str, ...] = ()
    complexity: float = 0.0
    files: tuple[str, ...] = ()


class KnownBug(msgspec.Struct, frozen=True, kw_only=True):
    """A known error that the task is about, with its best way out; `score` in 0 to 1 is how well it matches."""

    memory: str
    score: float
    solution: str
    causes: tuple[str, ...] = ()
    held: float = 1.0
    """Share of the times that the way out was taken after which the error stayed away."""


class Taught(msgspec.Struct, frozen=True, kw_only=True):
    """A strategy of the project that bears on the task; `from_failure` where it shows what to avoid."""

    memory: str
    content: str
    from_failure: bool = False


Next = Literal["use_known_pattern", "follow_past_success", "try_different_approach", "explore"]


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """What to do about an error: the way of errors like it, that of this very error, another one than was tried in this
    session, or to look for oneself. `approach` is the way, where one is known, `source` the memory that says so,
    `confidence` (0 to 1) how alike the errors are times how often the way held."""

    strategy: Next
    reason: str
    approach: str = ""
    source: str = ""
    confidence: float = 0.0


def course(known: Sequence[KnownBug], *, met_here: bool = False, tried: str = "") -> Course:
    """What to do about an error of which `known` are the errors like it, best first, a score of 1 being the same error.

    `met_here`: this session has met it before; `tried` is what was done about it then, which did not keep it away.
    """
    way = next((each for each in known if each.solution and each.solution != tried), None)
    strategy: Next
    if met_here:
        strategy, reason = "try_different_approach", "the same error occurred earlier in this session"
        if tried:
            reason += f", and what was done then did not keep it away: {tried}"
    elif way is None:
        strategy = "explore"
        reason = "errors like it are known, but no way out of them" if known else "nothing like it is known"
    elif way.score >= 1:
        strategy, reason = "follow_past_success", "this error was met and resolved before"
    else:
        strategy, reason = "use_known_pattern", "errors like it were resolved before"
    if way is None:
        return Course(strategy=strategy, reason=reason)
    sure = round(way.score * way.held, 4)
    return Course(strategy=strategy, reason=reason, approach=way.solution, source=way.memory, confidence=sure)


class Guidance(msgspec.Struct, frozen=True, kw_only=True):
    """Advice for a task; `sources` are the memories that it rests on, `confidence` is in 0 to 1."""

    suggested_approach: str = ""
    things_to_try: list[str] = []
    things_to_avoid: list[str] = []
    expected_challenges: list[str] = []
    estimated_complexity: Complexity = "medium"
    confidence: float = NO_PRECEDENT
    sources: list[str] = []


def synthesised(
    precedents: Sequence[Precedent],
    bugs: Sequence[KnownBug],
    *,
    strategies: Sequence[Taught] = (),
    avoid: Iterable[str] = (),
    rejected: Iterable[str] = (),
    hot_files: Iterable[str] = (),
) -> Guidance:
    """Advice from precedents, known bugs and strategies, best first in each.

    `avoid` is what the project avoids, `rejected` what the user often rejects, `hot_files` those files of the project
    that are often changed or bring bugs.
    """
    succeeded = [each for each in precedents if each.outcome == "success"]
    failed = [each for each in precedents if each.outcome == "failure"]
    approach = next((each.approach for each in succeeded if each.approach), "")
    challenges: list[str] = []
    if bugs:
        approach = approach or bugs[0].solution
        challenges += bugs[0].causes
    hot = set(hot_files)
    touched = [path for each in precedents for path in each.files if path in hot]
    if touched:
        challenges.append(f"touches files that are often changed or bring bugs: {', '.join(_some(touched, 3))}")
    sources = [each.memory for each in (*succeeded[:3], *failed[:3])]
    sources += [each.memory for each in bugs[:1]] + [each.memory for each in strategies]
    return Guidance(
        suggested_approach=approach,
        things_to_try=_some(
            (*_lessons(strategies, of_failure=False), *(tip for each in succeeded for tip in each.tips)), MOST_LINES
        ),
        things_to_avoid=_some(
            (
                *_lessons(strategies, of_failure=True),
                *_some((gotcha for each in failed for gotcha in each.gotchas), MOST_LINES),
                *_some(avoid, MOST_LINES),
                *_some(rejected, 3),
            ),
            3 * MOST_LINES + 3,
        ),
        expected_challenges=_some(challenges, MOST_LINES),
        estimated_complexity=_complexity(precedents, bool(touched)),
        confidence=_confidence(precedents, bugs),
        sources=_some(sources, 10),
    )


def _lessons(strategies: Sequence[Taught], *, of_failure: bool) -> Iterator[str]:
    return (each.content for each in strategies if each.from_failure == of_failure)


def _confidence(precedents: Sequence[Precedent], bugs: Sequence[KnownBug]) -> float:
    """How sure the advice is: more where something like it succeeded, and where a bug is known that looks the same."""
    confidence = BASE if precedents or bugs else NO_PRECEDENT
    if any(each.outcome == "success" for each in precedents):
        confidence += PRECEDENT
    if bugs:
        confidence += PATTERN * bugs[0].score
    return round(min(confidence, 1.0), 4)


def _complexity(precedents: Sequence[Precedent], hot: bool) -> Complexity:
    if hot:
        return "high"
    if not precedents:
        return "medium"
    mean = sum(each.complexity for each in precedents) / len(precedents)
    return "high" if mean >= 0.66 else "low" if mean < 0.33 else "medium"


def _some(texts: Iterable[str], limit: int) -> list[str]:
    return list(dict.fromkeys(filter(None, texts)))[:limit]
