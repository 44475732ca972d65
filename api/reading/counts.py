"""Counts as answers show them: what is remembered, how far it is read, what it takes, and what models cost. Field
order is the order of the JSON."""

from msgspec import UNSET, UnsetType

from memctl.api.reading.records import Record
from memctl.api.reading.views import Scope


class Use(Record, frozen=True, kw_only=True):
    """How agents used memories of a kind.

    `recalls` counts each time that one was recalled in work that is over. Of the newest 32 of each memory, `followed`
    are those whose work ended in a known way, `worth` what came of them (a success 1, a part of it 0.5); `ratings`
    counts its newest 32 ratings, `helpful` those of 0.5 or more. `kind` is empty for what is no memory (core memory,
    the state of a session after a compaction), and for memories that are gone.
    """

    kind: str
    recalls: int = 0
    followed: int = 0
    worth: float = 0.0
    ratings: int = 0
    helpful: int = 0


class EventCounts(Record, frozen=True, kw_only=True):
    """Events in the log, all and by type."""

    total: int
    by_type: dict[str, int]


class Generation(Record, frozen=True, kw_only=True):
    """The live generation of each stage."""

    stage1: int
    stage2: int


class ShardProgress(Record, frozen=True, kw_only=True):
    """Up to which position a shard was folded, and how far it is behind."""

    stage: int
    shard: int
    position: int
    lag: int


class LogProgress(Record, frozen=True, kw_only=True):
    """How far the log reaches, up to where it can be read, and how far it was folded."""

    last_position: int
    mark: int
    generation: Generation
    shards: list[ShardProgress]


class Outbox(Record, frozen=True, kw_only=True):
    """Vectors that wait to be written, and texts that wait to be embedded."""

    to_write: int
    waiting_for_dense: int


class ModelUse(Record, frozen=True, kw_only=True):
    """Sessions by the model that each used last, and their tokens; `model` is empty where the client names none. What a
    fork or a resumed session repeats counts in each, which the totals count once."""

    model: str
    sessions: int
    tokens_in: int
    tokens_out: int
    tokens_cached: int


class Counts(Record, frozen=True, kw_only=True):
    """What there is, and what memory was good for (`measures`: shares of 1, None where nothing was measured yet)."""

    scope: Scope
    totals: dict[str, int]
    measures: dict[str, int | float | None]
    uses: list[Use]
    models: list[ModelUse]
    read_models: dict[str, int]
    events: EventCounts


class EngineState(Record, frozen=True, kw_only=True):
    """How far everything is, what waits, and sizes in bytes."""

    log: LogProgress
    outbox: Outbox
    bytes: dict[str, int]


class Allowance(Record, frozen=True, kw_only=True):
    """What of a budget is spent, and what is allowed."""

    spent: int | float
    allowed: int | float


class Stats(Counts, frozen=True, kw_only=True):
    """Counts, how far everything is, and for the API the budget of language models."""

    log: LogProgress
    outbox: Outbox
    bytes: dict[str, int]
    budget: dict[str, Allowance] | UnsetType = UNSET


class ModelCalls(Record, frozen=True, kw_only=True):
    """This month's calls of a model for a processor and a subject."""

    processor: str
    subject: str
    model: str
    calls: int
    tokens_in: int
    tokens_out: int
    usd: float
    not_answered: int


class Costs(Record, frozen=True, kw_only=True):
    """The budget, and what was spent of it."""

    budget: dict[str, Allowance]
    calls: list[ModelCalls]
