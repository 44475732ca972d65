"""Hindsight: what sessions needed that memory already held, whether it was recalled, and what it cost where it was not.

Rows say what happened in order of time; whether memory held a thing when it was needed is asked of positions in the
log, here, as it is read.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Annotated
from uuid import UUID

from msgspec import Meta, structs
from psycopg import sql

from memctl.api.reading import models
from memctl.api.reading.hindsight import Count, Explained, Held, HeldBy, NeededBy, Recall, Record, Report, Week
from memctl.api.reading.pages import Condition, built, select, several
from memctl.api.reading.places import Places, projects_of
from memctl.api.reading.questions import Limit, question
from memctl.api.reading.reader import Reader
from memctl.api.reading.views import iso, moment, week_of
from memctl.domain.events.event import Micros, derived_of
from memctl.domain.events.recalls import BECAUSE
from memctl.domain.retrieval.hindsight import APART, HindsightKind, Need, Pair, check_of, pairs, same_way, without_twins
from memctl.domain.support.errors import MemctlError
from memctl.infra.readmodels import rows as readmodels
from memctl.projections.hindsight import Hindsight, called
from memctl.projections.injections import Block, Injections

MOST_ROWS = 5_000
"""Things that one question looks at, those needed last first."""

KINDS: tuple[HindsightKind, ...] = ("known error", "known command", "found out again", "known place")

RecordId = Annotated[str, Meta(min_length=4, max_length=36, examples=["6f1c2a9e"])]


class NoSuchRecord(MemctlError):
    """There is no record of hindsight {id}."""

    exit_code = 3
    hint = "`memctl hindsight` lists those that there are"
    id: str


@question("/hindsight", "learning")
def hindsight(reader: Reader, places: Places, *, since: Micros | None = None, limit: Limit = 50) -> Report:
    """What sessions needed while memory held it: counts by kind and week, and the newest records. A memory counts where
    its last event stands before the need in the log, whatever their clocks say."""
    found = records(reader, places, since=since)
    return Report(counted(found), by_week(found), found[:limit], places.scope)


@question("/hindsight/{id}", "learning")
def explained(reader: Reader, places: Places, id: RecordId) -> Explained:
    """One record of hindsight by the beginning of its id: why need and memory were paired, and who else had it.

    Raises: NoSuchRecord.
    """
    for row, pair, record in _paired(reader, places):
        if record.id.startswith(id):
            shared = sorted(set(pair.need.words).intersection(pair.memory.words))
            return Explained(
                **{name: getattr(record, name) for name in Record.__struct_fields__},
                why=_why(row, pair, shared),
                shared=shared,
                need=pair.need.text,
                held_by=[HeldBy(m.stream, m.memory, m.text, iso(moment(m.at))) for m in row.memories],
                needed_by=[NeededBy(each.stream, iso(moment(each.at))) for each in row.needs],
                unsaid=_unsaid(reader, row, pair.need) if record.recall is None else "",
            )
    raise NoSuchRecord(id=id)


def records(reader: Reader, places: Places, *, since: int | None = None) -> list[Record]:
    """Every record of these projects, newest first."""
    return [record for _, pair, record in _paired(reader, places) if since is None or pair.need.at >= since]


def counted(found: Sequence[Record]) -> list[Count]:
    """The counts by kind; kinds of which there is none are there with 0."""
    counts = []
    for kind in KINDS:
        of_kind = [each for each in found if each.kind == kind]
        lost = [each for each in _apart(of_kind) if each.recall is None]
        counts.append(
            Count(
                kind=kind,
                count=len(of_kind),
                recalled=sum(each.recall is not None for each in of_kind),
                calls=sum(each.calls for each in lost),
                seconds=sum(each.seconds for each in lost),
                tokens=sum(each.tokens for each in lost),
            )
        )
    return counts


def _apart(found: Iterable[Record]) -> Iterable[Record]:
    """One record of those that cost something together: what was recalled costs nothing together with what was not."""
    return {(e.kind, e.session, e.end or e.event, e.recall is None): e for e in found}.values()


def by_week(found: Iterable[Record]) -> list[Week]:
    """The counts by week, oldest first."""
    weeks: dict[date, list[bool]] = {}
    for each in found:
        weeks.setdefault(week_of(each.at.date()), []).append(each.recall is not None)
    return [Week(week, len(recalled), sum(recalled)) for week, recalled in sorted(weeks.items())]


def seconds_by_day(found: Iterable[Record]) -> dict[date, tuple[int, int]]:
    """What it took until needs were met: of those that were recalled, and of those that were not, as `counted` counts
    it."""
    days: dict[date, tuple[int, int]] = {}
    for each in _apart(found):
        recalled, lost = days.get(day := each.at.date(), (0, 0))
        days[day] = (recalled, lost + each.seconds) if each.recall is None else (recalled + each.seconds, lost)
    return days


def _paired(reader: Reader, places: Places) -> list[tuple[Hindsight, Pair, Record]]:
    rows = _rows(reader, places)
    positions = _positions(reader, {event for row in rows for event in _events_that_may_count(row)})
    known = projects_of(reader)
    found = []
    for row in rows:
        assert row.kind is not None
        for pair in pairs(
            row.kind, row.needs, row.memories, positions=positions,
            together=known.same,
        ):  # fmt: skip
            if places.locations is None or pair.need.location in places.locations:
                found.append((row, pair))
    found, twins = _each_once(found)
    blocks = _blocks(reader, {pair.need.stream for _, pair in found})
    unnamed = {row.subject for row, pair in found if row.kind == "known error" and not pair.need.text}
    names = _names_of(reader, unnamed)
    shown = []
    for row, pair in found:
        need = pair.need
        holding = _holding(row, need) | twins.get((need.stream, need.event), set())
        recall = _recall(row, need, holding, blocks.get(need.stream))
        record = _record(row, pair, positions, recall, known.name_of(need.location))
        if not need.text:
            record = structs.replace(record, what=names.get(row.subject, record.what))
        shown.append((row, pair, record))
    return sorted(shown, key=lambda each: (each[1].need.at, each[2].id), reverse=True)


def _events_that_may_count(row: Hindsight) -> Iterator[str]:
    """The events of needs that come after some memory of the row, and of memories that some need comes after: in no
    other is it asked where it stands in the log."""
    first = min((each.at for each in row.memories), default=0) + APART
    last = max((each.at for each in row.needs), default=0) - APART
    yield from (each.event for each in row.needs if each.at >= first)
    yield from (each.event for each in row.memories if each.at <= last)


def _each_once(
    found: Sequence[tuple[Hindsight, Pair]],
) -> tuple[list[tuple[Hindsight, Pair]], dict[tuple[str, str], set[str]]]:
    """The pairs without those that another stands for, and by stream and event what those leave it: the memory of an
    error helps with the command as well."""
    stands = without_twins([(row.kind, pair) for row, pair in found if row.kind is not None])
    twins: dict[tuple[str, str], set[str]] = {}
    for (row, pair), stays in zip(found, stands, strict=True):
        if not stays:
            twins.setdefault((pair.need.stream, pair.need.event), set()).update(_holding(row, pair.need))
    return [each for each, stays in zip(found, stands, strict=True) if stays], twins


def _rows(reader: Reader, places: Places) -> list[Hindsight]:
    if not built(reader, models.hindsight):
        return []
    several_needs = Condition(sql.SQL("(row->>'several')::boolean"))
    found = select(
        reader, models.hindsight, "SELECT row FROM {rows} ORDER BY (row->>'last_at')::bigint DESC, key LIMIT %s",
        MOST_ROWS, places=places, conditions=[several_needs], binary=True,
    )  # fmt: skip
    return [readmodels.decode_row(models.hindsight, row) for (row,) in found]


def _names_of(reader: Reader, signatures: Collection[str]) -> dict[str, str]:
    """What errors are called, of which only their end is kept beside a need: their signatures say nothing to people."""
    known = several(reader, models.bug_patterns, sorted(signatures)) if signatures else {}
    return {name: called(each.error_types, each.message or each.template) for name, each in known.items()}


def _positions(reader: Reader, events: Iterable[str]) -> dict[str, int]:
    """Since which position the log has each of these events."""
    wanted = [UUID(each) for each in events if each]
    found = reader.connection.execute(
        "SELECT coalesce(variant_of, event_id)::text, min(position) FROM memctl.events"
        " WHERE position = ANY(ARRAY(SELECT * FROM memctl.positions_of_versions(%s, %s))) GROUP BY 1",
        [reader.space_id, wanted],
    )
    return dict(found.fetchall())


def _blocks(reader: Reader, streams: Iterable[str]) -> Mapping[str, Injections]:
    if not built(reader, models.injections):
        return {}
    return several(reader, models.injections, sorted(streams))


def _record(
    row: Hindsight, pair: Pair, positions: Mapping[str, int], recall: Recall | None, project: str | None
) -> Record:
    need, memory = pair.need, pair.memory
    assert row.kind is not None
    return Record(
        id=str(derived_of("hindsight record", row.kind, need.id)),
        kind=row.kind,
        what=need.text or row.subject,
        project=project,
        session=need.stream,
        at=moment(need.at),
        position=positions.get(need.event, 0),
        event=need.event,
        end=need.end,
        memory=Held(memory.memory, memory.text, memory.stream, positions.get(memory.event, 0)),
        recall=recall,
        met=bool(need.end),
        same_way=pair.same_way,
        likeness=pair.likeness,
        calls=need.calls,
        seconds=max(need.duration_us - need.idle_us, 0) // 1_000_000,
        tokens=need.tokens,
    )


def _holding(row: Hindsight, need: Need) -> set[str]:
    """The memories that held what was needed, when it was needed."""
    return {each.memory for each in row.memories if each.stream != need.stream and each.at < need.at}


def _recall(row: Hindsight, need: Need, holding: set[str], injected: Injections | None) -> Recall | None:
    """The first block that put a memory which held it before the agent, before the need was met."""
    for block in _blocks_before(row, need, injected.blocks if injected is not None else ()):
        if block.withheld:
            continue
        for rank, (memory, score) in enumerate(block.memories, 1):
            if memory in holding:
                return Recall(block.hook, rank, score)
    return None


def _blocks_before(row: Hindsight, need: Need, blocks: Sequence[Block]) -> list[Block]:
    """Those of the blocks that came before the need was met, the first one first."""
    until = need.at + (need.duration_us if row.kind in ("known error", "known command") and need.end else 0)
    in_order = sorted(blocks, key=lambda block: (block.at, block.id))
    return [block for block in in_order if not need.end or block.at <= until]


def _unsaid(reader: Reader, row: Hindsight, need: Need) -> str:
    """Why no memory that held it was said, as far as that is recorded: of prompts, not of tools."""
    injected, holding = _blocks(reader, [need.stream]).get(need.stream), _holding(row, need)
    if injected is None:
        return "no hook of this session asked memory"
    for block in _blocks_before(row, need, (*injected.blocks, *injected.silences)):
        if block.withheld and any(id in holding for id, _ in block.memories):
            return f"found at {block.hook} and held back, to compare work with memory and without"
        for id, score, why in block.passed_over:
            if id in holding:
                return f"found at {block.hook} and left out, with a score of {score:.2f}: {BECAUSE.get(why, why)}"
    return "not among what was found at a prompt; where a tool failed, nothing was sure enough to say"


def _why(row: Hindsight, pair: Pair, shared: Sequence[str]) -> str:
    words = ", ".join(shared[:8])
    if row.kind == "known error":
        if not pair.same_way:
            return "the same error in the same words was resolved before; it ended otherwise here, or not at all"
        alike = same_way(pair.need.words, pair.memory.words, check_of(pair.need.text))
        return f"the same error was resolved the same way before ({words}; likeness {alike:.2f})"
    if row.kind == "known command":
        return f"`{row.subject}` had failed so before, and an earlier session knew the form that works here"
    return f"an earlier request much like this one ({words}; likeness {pair.likeness:.2f}) had come to it"
