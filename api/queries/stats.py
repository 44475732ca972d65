"""How much is known, how far the folds have read, what it takes on disk, and what language models cost."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct, convert, structs
from msgspec.structs import asdict
from psycopg import sql

from memctl.api.queries.endings import GUIDING, MEMORY, endings, together, uses_of
from memctl.api.reading import models
from memctl.api.reading.counts import (
    Allowance,
    Costs,
    Counts,
    EngineState,
    EventCounts,
    Generation,
    LogProgress,
    ModelCalls,
    ModelUse,
    Outbox,
    ShardProgress,
    Stats,
    Use,
)
from memctl.api.reading.pages import Where, built, field_of, select, total
from memctl.api.reading.places import Places
from memctl.api.reading.questions import Limit, question
from memctl.api.reading.reader import Reader
from memctl.api.reading.records import EventType, types_of_events
from memctl.domain.events.event import Micros
from memctl.infra.database import single_row
from memctl.infra.llm import budget
from memctl.infra.log.mark import mark
from memctl.infra.readmodels import generations, rebuilds
from memctl.infra.settings_model import Llm
from memctl.infra.vectors.outbox import backlog
from memctl.projections.kernel import projections
from memctl.projections.stats import DAY, DayStats

SUMMED = tuple(name for name in DayStats.__struct_fields__ if name not in ("location", "day", "once"))


@question("/stats", "log", scopes=("read", "operate"), whole=True, live=True)
def statistics(
    reader: Reader, places: Places, llm: Llm, *, since: Micros | None = None, before: Micros | None = None
) -> Stats:
    """Counts, what memory was good for, progress of the folds, the budget, and sizes. `since`, `before`: totals of the
    days of UTC from the one to before the other; the rest stays whole."""
    return structs.replace(stats(reader, places, since, before), budget=allowance(reader, llm))


def stats(reader: Reader, places: Places, since: int | None = None, before: int | None = None) -> Stats:
    """Counts by read model and by type of event; totals of what happened and what they say of memory's help,
    for the project asked about; how agents used what was recalled, everywhere; how far each shard has read; what waits
    for the vector store; sizes."""
    return Stats(**asdict(counts(reader, places, since, before)), **asdict(state(reader)))


def counts(reader: Reader, places: Places, since: int | None = None, before: int | None = None) -> Counts:
    """The part of `stats` that takes the longer the more there is."""
    totals, uses = totals_of(reader, places, since, before), uses_of(reader)
    by_type = _events_by_type(reader)
    return Counts(
        scope=places.scope,
        totals=totals,
        measures=measures(totals, uses),
        uses=uses,
        models=models_of(reader, places, since, before),
        read_models={p.name: total(reader, p) for p in projections() if built(reader, p)},
        events=EventCounts(total=by_type.total(), by_type=dict(sorted(by_type.items()))),
    )


def state(reader: Reader) -> EngineState:
    """The part of `stats` that is quick to compute: how far everything is, what waits, and sizes."""
    to_write, to_embed = backlog(reader.connection, reader.live.stage2, reader.space_id if reader.apart else None)
    return EngineState(
        log=progress(reader),
        outbox=Outbox(to_write=to_write, waiting_for_dense=to_embed),
        bytes={} if reader.apart else sizes(reader),
    )


MOST_MODELS = 50
"""That are named."""

AT_ONCE = 2_000_000
"""Positions of the log that one statement counts: a second's work."""

_counted: dict[tuple[object, ...], tuple[int, Counter[str]]] = {}
"""By database and space: up to which position events were counted, and how many of each type there are. Below the mark
none comes and none goes (what is forgotten is emptied), so each is counted once by a process."""


def _events_by_type(reader: Reader) -> Counter[str]:
    info, readable = reader.connection.info, mark(reader.connection, reader.space_id)
    which = (info.host, info.port, info.dbname, reader.space_id)
    since, counts = _counted.get(which, (0, Counter[str]()))
    if since > readable:  # another log in the former one's place
        since, counts = 0, Counter[str]()
    while since < readable:
        up_to = min(since + AT_ONCE, readable)
        counts = counts + _types_between(reader, since, up_to)
        since = up_to
        if counts:  # what is restored into a log without events may stand below a mark that was reached before
            _counted[which] = (since, counts)
    return counts + _types_between(reader, since, None)


def _types_between(reader: Reader, after: int, up_to: int | None) -> Counter[str]:
    found = reader.connection.execute(
        "SELECT type, count(*) FROM memctl.events"
        " WHERE space_id = %s AND position > %s AND position <= coalesce(%s, 9223372036854775807) GROUP BY type",
        [reader.space_id, after, up_to],
    )
    return Counter(dict(found.fetchall()))


class Replays(Struct, frozen=True):
    """Rebuilds of the read models, newest first."""

    replays: list[rebuilds.RebuildProgress]


@question("/replays", "log", scopes=("operate",), whole=True, live=True, shared=True)
def replays(reader: Reader, *, limit: Annotated[int, Meta(ge=1, le=100)] = 10) -> Replays:
    """How far rebuilds of the read models are, with rate and time left, or how they ended; newest first."""
    return Replays(rebuilds.progress(reader.connection, limit))


@question("/events/types", "log")
def catalogue(reader: Reader) -> list[EventType]:
    """Every type of event that may stand in the log: its name, version, meaning, and fields."""
    return types_of_events()


def version_of(reader: Reader) -> str:
    """What rows an answer was made from: the live generations, and how far their shards have read, all together."""
    offsets = generations.offsets(reader.connection, reader.live.stage1, reader.live.stage2)
    read = sum(o.reach.of(reader.space_id) for o in offsets)
    return f"{reader.space_id}.{reader.live.stage1}.{reader.live.stage2}-{read}"


@question("/costs", "log", scopes=("operate",), whole=True, live=True)
def costs(reader: Reader, llm: Llm, *, limit: Limit = 50) -> Costs:
    """This month's calls by processor and subject, dearest first, and the budget (over all spaces, in UTC).

    What is set aside for calls under way, or of which nobody knows what became of them, counts as spent.
    """
    calls = budget.ledger(reader.connection, reader.space_id, limit)
    return Costs(budget=allowance(reader, llm), calls=[convert(each, ModelCalls) for each in calls])


def allowance(reader: Reader, llm: Llm) -> dict[str, Allowance]:
    """What of the budget is spent, and what is allowed, by period and unit; nothing where other spaces share it."""
    if reader.apart:
        return {}
    spent = budget.spent(reader.connection)
    return {
        "daily_usd": Allowance(spent=float(spent.daily_usd), allowed=llm.daily_usd),
        "monthly_usd": Allowance(spent=float(spent.monthly_usd), allowed=llm.monthly_usd),
        "daily_tokens": Allowance(spent=spent.daily_tokens, allowed=llm.daily_tokens),
        "monthly_tokens": Allowance(spent=spent.monthly_tokens, allowed=llm.monthly_tokens),
    }


def by_day(
    reader: Reader, places: Places, first: int | None = None, end: int | None = None
) -> dict[int, dict[str, int]]:
    """What happened (`projections.stats.DayStats`), by day since 1970: from `first` on, and before `end`.

    What copies of a session, forks and resumed ones hold of one line counts once, as the fullest of them has it; but
    each of them was opened.
    """
    p = models.stats
    names = {name: sql.Identifier(name) for name in SUMMED}
    of_streams = (sql.SQL("sum((row->>{})::bigint) AS {}").format(sql.Literal(n), at) for n, at in names.items())
    of_lines = (
        sql.SQL("{}({at}) AS {at}").format(sql.SQL("sum" if name == "sessions_opened" else "max"), at=at)
        for name, at in names.items()
    )
    found = select(
        reader, p,
        "SELECT day, {sums} FROM (SELECT day, {of_lines} FROM ("
        "SELECT {day} AS day, coalesce({once}, stream) AS once, {of_streams} FROM {rows} GROUP BY 1, 2, stream"
        ") AS of_streams GROUP BY day, once) AS of_lines GROUP BY 1",
        places=places, conditions=Where(p).between("day", first, end), day=field_of(p, "day"),
        once=field_of(p, "once"), of_lines=sql.SQL(", ").join(of_lines), of_streams=sql.SQL(", ").join(of_streams),
        sums=sql.SQL(", ").join(sql.SQL("coalesce(sum({}), 0)::bigint").format(at) for at in names.values()),
    )  # fmt: skip
    return {day: dict(zip(SUMMED, row, strict=True)) for day, *row in found}


def totals_of(reader: Reader, places: Places, since: int | None = None, before: int | None = None) -> dict[str, int]:
    """What happened, summed over the days, and how work ended (`endings`); of whole days, from the one in which `since`
    lies to the one before that of `before`."""
    first, end = (None if at is None else at // DAY for at in (since, before))
    days = by_day(reader, places, first, end)
    totals = {name: sum(day[name] for day in days.values()) for name in SUMMED} | {"days": len(days)}
    return totals | endings(reader, places, None if first is None else first * DAY, None if end is None else end * DAY)


_TOKENS = ("tokens_in", "tokens_out", "tokens_cached")


def models_of(reader: Reader, places: Places, since: int | None = None, before: int | None = None) -> list[ModelUse]:
    """What models the sessions used that were last heard of in that time, the one with the most output first."""
    p = models.sessions
    sums = sql.SQL(", ").join(sql.SQL("coalesce(sum({}), 0)::bigint").format(field_of(p, name)) for name in _TOKENS)
    found = select(
        reader, p,
        "SELECT coalesce({model}, ''), count(*), {sums} FROM {rows} GROUP BY 1 ORDER BY 4 DESC, 1 LIMIT %s",
        MOST_MODELS,
        places=places, conditions=Where(p).between("last_at", since, before), model=field_of(p, "model"), sums=sums,
    )  # fmt: skip
    used = [ModelUse(model=model, sessions=n, **dict(zip(_TOKENS, spent, strict=True))) for model, n, *spent in found]
    return [row for row in used if row.model or any((row.tokens_in, row.tokens_out, row.tokens_cached))]


def measures(totals: dict[str, int], uses: Sequence[Use]) -> dict[str, float | int | None]:
    """How well memory does, as shares of 1; None where there is nothing to measure it by yet.

    Success of episodes whose outcome is known, with recalled memory, without, and with it held
    back; `pattern_accuracy`: fixes that lasted. Over all projects: `recalls` counts memories recalled in work that is
    over, `recalls_useful` the share of those whose work went well and of ratings that are good, `guidance_helpful` the
    same of the kinds that guidance is made of, `strategies_useful` of strategies alone; `rated_helpful` of ratings
    alone (0.5 or more).
    """
    everything = together(uses)
    guiding = together(use for use in uses if use.kind in GUIDING)
    strategies = together(use for use in uses if use.kind == "strategy")
    lasted = lasting_fixes(totals)
    return {
        **{
            f"success_{memory}": _share(totals[f"episodes_{memory}_succeeded"], totals[f"episodes_{memory}"])
            for memory in MEMORY
        },
        "pattern_accuracy": _share(lasted, totals["errors_resolved"]),
        "recalls": everything.recalls,
        "recalls_useful": _useful(everything),
        "guidance_helpful": _useful(guiding),
        "strategies_useful": _useful(strategies),
        "rated_helpful": _share(everything.helpful, everything.ratings),
    }


def lasting_fixes(totals: dict[str, int]) -> int:
    """Errors that were resolved and did not come back soon after."""
    return max(totals["errors_resolved"] - totals["resolutions_refuted"], 0)


def _useful(use: Use) -> float | None:
    return _share(use.worth + use.helpful, use.followed + use.ratings)


def _share(part: float, whole: float) -> float | None:
    return round(part / whole, 4) if whole else None


def progress(reader: Reader) -> LogProgress:
    reached = mark(reader.connection, reader.space_id)
    row = single_row(reader.connection, "SELECT coalesce(max(position), 0) FROM memctl.events")
    offsets = generations.offsets(reader.connection, reader.live.stage1, reader.live.stage2)
    read = [(o.stage, o.shard, o.reach.of(reader.space_id)) for o in offsets]
    lowest = min((position for stage, _, position in read if stage == 1), default=reached)
    return LogProgress(
        last_position=row[0],
        mark=reached,
        generation=Generation(stage1=reader.live.stage1, stage2=reader.live.stage2),
        shards=[
            ShardProgress(
                stage=stage,
                shard=shard,
                position=position,
                lag=max((reached if stage == 1 else lowest) - position, 0),
            )
            for stage, shard, position in read
        ],
    )


def sizes(reader: Reader) -> dict[str, int]:
    row = single_row(
        reader.connection,
        "SELECT pg_database_size(current_database()), (SELECT sum(pg_total_relation_size(name))::bigint"
        "  FROM (SELECT name FROM memctl.partitions UNION ALL SELECT 'memctl.deliveries') AS t(name)),"
        " pg_total_relation_size('memctl.embeddings'),"
        " (SELECT coalesce(sum(pg_total_relation_size(format('%I.%I', schemaname, tablename)::regclass)), 0)::bigint"
        "  FROM pg_tables WHERE schemaname = 'memctl' AND tablename ~ '_g[0-9]+$')",
    )
    return dict(zip(("database", "log", "embeddings", "read_models"), row, strict=True))
