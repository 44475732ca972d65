"""How a piece of work went, by rule: from what was run after the last change, what was said of it, and how it ended.

What ReasoningBank (Ouyang et al., 2025) asks a model. Later signs count more than earlier ones, and what was run more
than what was said. docs/internals/evaluation/judging.md says how often readers agree.
"""

from typing import Literal, NamedTuple

import msgspec

from memctl.domain.events.facts import Outcome
from memctl.domain.events.open_threads import goes_on
from memctl.domain.support import patterns
from memctl.domain.support.bounded import one_line

BARELY = 3
"""Uses of tools up to which an interrupted request was taken back, and nothing failed."""

SAID, SHOWN, MENDED, TAKEN_BACK, UNCONTRADICTED = 0.9, 0.85, 0.75, 0.6, 0.6
"""Confidence in what the user said, a run or a commit showed, an error that is gone shows, an interruption shows, and
in an agent's word that nothing speaks against."""

_LAST_WORDS = 400
"""Characters at the end of an agent's answer in which it owns up to what is left."""

_OWNS_UP = patterns.compile(
    r"\b(?:unable to|was(?:n't| not) able to|could(?: not|n't)|(?:is|are|remains?) (?:still )?(?:broken|failing)|"
    r"still (?:fails?|failing|broken)|not (?:yet )?(?:fixed|resolved|working|done)|gave up|blocked (?:on|by))\b|"
    r"못했|실패했|안 ?됩니다",
    patterns.I,
)


class Signs(msgspec.Struct, kw_only=True):
    """What shows how a piece of work went. `…_at` counts uses of tools before it, None where it never was."""

    steps: int = 0
    files_changed: int = 0
    changed_at: int | None = None
    tested_at: int | None = None
    tests_passed: bool | None = None
    committed_at: int | None = None
    failed_at: int | None = None
    """The last command that failed and was not seen to pass."""
    interrupted_at: int | None = None
    refused_at: int | None = None
    """The last change that the user refused."""
    feedback: Literal["positive", "negative", "neutral"] = "neutral"
    feedback_at: int = 0
    answer: str = ""
    answered_at: int = 0
    unresolved: dict[str, str] = msgspec.field(default_factory=dict)
    """Signatures of errors that matter to the work and are not resolved, with their messages."""
    resolved: dict[str, None] = msgspec.field(default_factory=dict)


class Verdict(NamedTuple):
    """How it went, why in words, and how sure that is (0 where nothing shows it)."""

    outcome: Outcome
    why: str
    confidence: float


def verdict_of(work: Signs, *, closed: bool) -> Verdict:
    """How it went. `closed`: the user went on to something else."""
    return _by_user(work) or _by_runs(work) or _by_words(work, closed=closed)


def _by_user(work: Signs) -> Verdict | None:
    changed = work.changed_at is not None
    if work.feedback != "neutral" and work.steps <= work.feedback_at:
        if work.feedback == "positive":
            return Verdict("success", "the user was content", SAID)
        return Verdict("partial" if changed else "failure", "the user said it was not right", SAID)
    if work.interrupted_at is not None and work.interrupted_at >= work.steps:
        if not changed and work.steps <= BARELY:
            return Verdict("unknown", "the user interrupted it before much was done", 0.0)
        return Verdict("partial" if changed else "failure", "the user interrupted the work", TAKEN_BACK)
    return None


def _by_runs(work: Signs) -> Verdict | None:
    changed, since = work.changed_at is not None, work.changed_at or 0
    failing = work.failed_at is not None and work.failed_at >= max(since, work.committed_at or 0)
    if work.committed_at is not None and work.committed_at >= since and not failing:
        tested = ", tests passed" if work.tests_passed else ""
        return Verdict("success", f"the work was committed{tested}", SHOWN)
    if changed:
        return _by_tests(work, since, failing=failing) or _by_errors(work, failing=failing)
    if failing and work.unresolved and (work.failed_at or 0) >= work.answered_at:
        return Verdict("failure", f"an error stayed{_last_error(work)}", MENDED)
    return None


def _by_tests(work: Signs, since: int, *, failing: bool) -> Verdict | None:
    """By the last run of tests, where it came after the last change."""
    if work.tests_passed is None or work.tested_at is None or work.tested_at < since:
        return None
    if not work.tests_passed:
        return Verdict("partial" if work.resolved else "failure", f"tests failed at last{_last_error(work)}", SHOWN)
    return None if failing else Verdict("success", "tests passed after the last change", SHOWN)


def _by_errors(work: Signs, *, failing: bool) -> Verdict | None:
    """By the errors that changes left or resolved."""
    if failing and work.unresolved:
        return Verdict("partial", f"an error stayed{_last_error(work)}", MENDED)
    if work.resolved and not work.unresolved:
        return Verdict("success", "what had failed passed after the changes", MENDED)
    return None


def _by_words(work: Signs, *, closed: bool) -> Verdict:
    """Nothing was run that shows it: what the agent said last of its work, if nothing speaks against it."""
    changed = work.changed_at is not None
    if work.refused_at is not None and (work.changed_at or 0) <= work.refused_at:
        return Verdict("partial", "the user refused a change, and none was made since", TAKEN_BACK)
    if not work.answer:
        return Verdict("unknown", "nothing says how it went", 0.0)
    if work.answered_at < work.steps:
        return Verdict("unknown", "the record ends in the middle of the work", 0.0)
    if _OWNS_UP.search(work.answer[-_LAST_WORDS:]):
        return Verdict("unknown", "the agent's last words tell of something that is left", 0.0)
    if goes_on(work.answer):
        return Verdict("unknown", "the agent's last words say that the work goes on or waits", 0.0)
    if changed:
        files = "1 file" if work.files_changed == 1 else f"{work.files_changed} files"
        return Verdict("success", f"{files} changed, done by the agent's word, and nobody objected", UNCONTRADICTED)
    return Verdict("success", "answered, and nobody objected" if closed else "answered", UNCONTRADICTED)


def _last_error(work: Signs) -> str:
    last = next(reversed(work.unresolved.values()), "")
    return f": {one_line(last, 120)}" if last else ""
