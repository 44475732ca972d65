"""Rules of replacement and patterns of code: how sure memory is of one, and the statements that change it.

Confidence is a moving average, c = 0.2·outcome + 0.8·c from 0.5 on, over the newest 32 outcomes in order of
time, so arrival changes nothing. A rule below 0.3 is weak and not applied, from 0.8 on it is trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal
from uuid import UUID

from memctl.domain.events.command import BadCommand, Command, Kind, command
from memctl.domain.events.event import Event, Payload, derived_of, event

RuleState = Literal["seen", "weak", "active", "trusted", "retired"]
RuleKind = Literal["literal", "regex", "ast"]

ALPHA, START = 0.2, 0.5
APPLIED, TRUSTED = 0.3, 0.8
"""Confidence below which a rule is not applied, and from which it is trusted."""

RECURS = 2
"""Files or sessions in which a rule or pattern must have been seen before it is shown."""

_FAMILY = {"javascript": "typescript", "c++": "c"}


@event("rule.reinforced")
class RuleReinforced(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody found that a rule of replacement held (`success`), or did not."""

    rule: str
    success: bool
    why: str = ""
    by: str = "user"


@event("pattern.retired")
class PatternRetired(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """A rule or pattern is no longer shown: it was weak, unseen for long, or the same as another (`into`).

    `back` takes an earlier retirement back.
    """

    pattern: str
    kind: Literal["rule", "code_pattern"] = "rule"
    reason: str = ""
    into: str = ""
    back: bool = False
    by: str = "user"


@event("change.undone")
class ChangeUndone(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """An edit was taken back: `change` is the event of the edit, `rules` and `patterns` what it had shown."""

    change: UUID
    rules: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    why: str = ""
    by: str = "user"


RULES = "knowledge/code-rules"
"""Stream of what is said of rules and patterns: they span sessions."""


@command("reinforce_rule")
class ReinforceRule(Command, frozen=True, kw_only=True):
    """Say that a rule of replacement held, or that it did not."""

    to: ClassVar[str] = RULES
    of_place: ClassVar[bool] = True
    refers: ClassVar[dict[str, Kind]] = {"rule": "thing"}
    rule: str
    success: bool
    why: str = ""

    def decide(self, history: Sequence[Event]) -> RuleReinforced:
        return RuleReinforced(rule=self.rule, success=self.success, why=self.why[:300], by=self.by)


@command("retire_pattern")
class RetirePattern(Command, frozen=True, kw_only=True):
    """Stop showing a rule or code pattern, perhaps because another (`into`) says the same; `back` shows it again."""

    to: ClassVar[str] = RULES
    of_place: ClassVar[bool] = True
    refers: ClassVar[dict[str, Kind]] = {"pattern": "thing", "into": "thing"}
    pattern: str
    kind: Literal["rule", "code_pattern"] = "rule"
    reason: str = ""
    into: str = ""
    back: bool = False

    def decide(self, history: Sequence[Event]) -> PatternRetired:
        if self.into == self.pattern:
            raise BadCommand(why="a rule cannot be merged into itself")
        return PatternRetired(
            pattern=self.pattern, kind=self.kind, reason=self.reason[:300], into=self.into, back=self.back, by=self.by
        )


@command("undo_change")
class UndoChange(Command, frozen=True, kw_only=True):
    """Say that an edit was taken back: it speaks against the rules and patterns that it showed."""

    to: ClassVar[str] = RULES
    of_place: ClassVar[bool] = True

    refers: ClassVar[dict[str, Kind]] = {"change": "thing", "rules": "thing", "patterns": "thing"}
    change: str
    rules: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    why: str = ""

    def decide(self, history: Sequence[Event]) -> ChangeUndone:
        if not self.rules and not self.patterns:
            raise BadCommand(why="name the rules or patterns that the change showed")
        try:
            change = UUID(self.change)
        except ValueError:
            raise BadCommand(why=f"{self.change} is no event") from None
        return ChangeUndone(
            change=change, rules=self.rules[:20], patterns=self.patterns[:20], why=self.why[:300], by=self.by
        )


def confidence(outcomes: Iterable[bool]) -> float:
    """How sure a rule is after these outcomes, oldest first. 0 to 1."""
    sure = START
    for success in outcomes:
        sure = ALPHA * success + (1 - ALPHA) * sure
    return round(sure, 4)


def state_of(sure: float, places: int, *, retired: bool) -> RuleState:
    """`places` counts the files and sessions it was seen in, whichever are more."""
    if retired:
        return "retired"
    if places < RECURS:
        return "seen"
    return "weak" if sure < APPLIED else "trusted" if sure >= TRUSTED else "active"


def family_of(language: str) -> str:
    """Languages whose rules are the same go by one name."""
    return _FAMILY.get(language, language)


def rule_id(language: str, before: str, after: str) -> str:
    """Key of a rule. Both directions of a replacement have one key: taking a change back speaks against it."""
    low, high = sorted((before, after))
    return str(derived_of("code_rule", family_of(language), low, high))


def pattern_id(location: str, language: str, variant: str) -> str:
    """Key of a code pattern of one place."""
    return str(derived_of("code_pattern", location, family_of(language), variant))
