"""Events that nothing records or reads any more: logs hold them, so their names stay taken and their payloads known."""

from typing import Literal
from uuid import UUID

from memctl.domain.events.event import Payload, event


@event("entity.described")
class EntityDescribed(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """A person, or a processor, said what a library, service or person is."""

    kind: str
    platform: str = ""
    name: str
    display_name: str = ""
    summary: str = ""
    interests: tuple[str, ...] = ()
    notes: str = ""
    trust: float | None = None
    by: str = "user"


@event("relation.asserted")
class RelationAsserted(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """One thing has to do with another."""

    source: str
    relation: str
    target: str
    weight: float = 1.0
    why: str = ""
    by: str = "user"


@event("sentiment.noted")
class SentimentNoted(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """How somebody feels towards somebody, -1 to 1, as a person or a judge said."""

    node: str
    score: float
    context: str = ""
    by: str = "user"


@event("rule.reinforced")
class RuleReinforced(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody found that a rule of replacement in code held (`success`), or did not."""

    rule: str
    success: bool
    why: str = ""
    by: str = "user"


@event("pattern.retired")
class PatternRetired(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """A rule of replacement in code, or a pattern of them, is no longer shown."""

    pattern: str
    kind: Literal["rule", "code_pattern"] = "rule"
    reason: str = ""
    into: str = ""
    back: bool = False
    by: str = "user"


@event("change.undone")
class ChangeUndone(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """An edit was taken back, with the rules and patterns that it had shown."""

    change: UUID
    rules: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    why: str = ""
    by: str = "user"
