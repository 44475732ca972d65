"""Figures in the text format of Prometheus: how far everything is, what waits, what needs a person, how long it took.

`METRICS` names them all; the reference page, the dashboard and the alerts are tested against it.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple, get_args, get_type_hints

from fastapi import APIRouter, Request, Response
from msgspec import structs
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memctl.api.checks.counting import Counted
from memctl.api.checks.dead_letters import standing
from memctl.api.checks.health import Health, Trouble, health, servers, troubles
from memctl.api.http.access import caller_of
from memctl.api.queries import hindsight as hindsights
from memctl.api.queries.endings import uses_of
from memctl.api.queries.stats import lasting_fixes, sizes, totals_of, version_of
from memctl.api.reading.caller import Caller
from memctl.api.reading.counts import Use
from memctl.api.reading.hindsight import Count
from memctl.api.reading.places import Places
from memctl.api.reading.reader import Reader, Readers
from memctl.infra.backup import copies as backups
from memctl.infra.backup.copies import KeptBackups
from memctl.infra.backup.wal_archive import WalArchive
from memctl.infra.hooks import spool
from memctl.infra.llm import budget
from memctl.infra.log.mark import mark, mark_age
from memctl.infra.log.spaces import space_names
from memctl.infra.readmodels import processor_work
from memctl.infra.settings_model import Llm, Settings
from memctl.infra.vectors import outbox

FOLDER = "spool"
"""Of the data directory; a door on another machine has one of its own."""

PREFIX = "/v1"
"""Of everything but probes and pages."""

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Seconds."""


class Metric(NamedTuple):
    """A metric by its name without `memctl_`."""

    name: str
    meaning: str
    labels: tuple[str, ...] = ()
    kind: Literal["gauge", "counter", "histogram"] = "gauge"


METRICS = (
    Metric("log_position", "Highest position of the log."),
    Metric("log_mark", "Position up to which the log may be read.", ("space",)),
    Metric(
        "log_mark_age_seconds", "Age of the oldest event of the space that may not be read yet, else 0.", ("space",)
    ),
    Metric("shard_position", "Position up to which a shard is folded.", ("stage", "shard")),
    Metric("shard_lag", "Positions that a shard is behind.", ("stage", "shard")),
    Metric("unfolded_seconds", "Age of the oldest event not folded 30 s after it was appended; 0 where all are."),
    Metric("troubles", "What is not well, as `memctl status` says, and whether it needs a person.", ("kind", "needs")),
    Metric("shards_halted", "Shards that stand still."),
    Metric("slow_writers", "Transactions that others wait for: nothing appended to their spaces since is read."),
    Metric(
        "dead_letters",
        "Events and keys that this read model's fold could not take; none where all.",
        ("space", "model"),
    ),
    Metric("points_waiting", "Points that the vector store does not have yet.", ("space",)),
    Metric("dense_waiting", "Points that wait for their dense vector.", ("space",)),
    Metric("dense_seconds_left", "Time to embed what waits; none where nobody knows."),
    Metric("filling_waiting", "Points that wait for a vector of the model that is to serve; 0 where there is none."),
    Metric("spool_deliveries", "Hook deliveries that wait on this machine's disk."),
    Metric("spool_refused", "Hook deliveries that found no room in this machine's spool, ever.", kind="counter"),
    Metric("backup_age_seconds", "Age of the newest backup where they go by themselves; none where there is none."),
    Metric("backup_interval_seconds", "How often one is made; 0 where none is on schedule."),
    Metric("archive_failing", "Whether Postgres' archiving fails; none where off."),
    Metric("archive_waiting_bytes", "What it wrote since."),
    Metric("archive_waiting_seconds", "Age of the oldest that is in no archive."),
    Metric("standby_behind_seconds", "How old what `standby_url` answers is."),
    Metric("replay_running", "Whether a replay is under way."),
    Metric("replay_failed", "Whether the last replay that ended has failed."),
    Metric("replay_differing", "Whether the last replay that ended had found live rows that differ."),
    Metric("llm_spent_usd", "Dollars that language models took, over all spaces, with what is set aside.", ("period",)),
    Metric("llm_allowed_usd", "Dollars that they may take.", ("period",)),
    Metric("llm_spent_tokens", "Tokens that they took, likewise.", ("period",)),
    Metric("llm_allowed_tokens", "Tokens that they may take.", ("period",)),
    Metric(
        "episodes",
        "Episodes that ended in a known way, by whether memory was injected.",
        ("space", "memory", "outcome"),
    ),
    Metric("fixes", "Errors that were resolved, and whether they stayed away.", ("space", "held")),
    Metric("recalls", "Times that memories were injected in work that is over.", ("space", "kind")),
    Metric(
        "recalls_followed", "Those, the newest 32 of each memory, whose work ended in a known way.", ("space", "kind")
    ),
    Metric("recalls_worth", "What came of those: 1 for a success, 0.5 for a part of it.", ("space", "kind")),
    Metric("ratings", "The newest 32 ratings of each memory; helpful from 0.5 on.", ("space", "kind", "helpful")),
    Metric(
        "hindsight",
        "Times that memory held what was needed, and whether it was recalled.",
        ("space", "kind", "recalled"),
    ),
    Metric("processor_work", "Pieces of work of processors.", ("space", "processor", "status")),
    Metric("database_bytes", "Size of the database."),
    Metric("log_bytes", "Size of the log."),
    Metric("embeddings_bytes", "Size of the cache of vectors."),
    Metric("read_models_bytes", "Size of the read models of all generations."),
    Metric(
        "request_seconds",
        "Time that answers of this process took.",
        ("space", "method", "route", "status"),
        "histogram",
    ),
)


class Sample(NamedTuple):
    name: str
    value: float
    labels: tuple[str, ...] = ()


def routes(readers: Readers, timings: Timings, settings: Settings) -> APIRouter:
    router, counted = APIRouter(tags=["probes"]), Counted()

    @router.get("/metrics", response_class=Response)
    def figures(request: Request) -> Response:
        """How far everything is, for Prometheus."""
        caller = caller_of(request)
        if caller.apart:  # nothing of what all spaces share
            samples = readers.read(lambda reader: _of_a_space(reader, counted), caller)
            text = exposition(samples, timings, caller.space)
            return Response(text, media_type=_TEXT)
        asked = servers(settings)

        def look(reader: Reader) -> list[Sample]:
            return [
                *_of_the_database(health(reader, asked)),
                *(Sample(f"{name}_bytes", size) for name, size in sizes(reader).items()),
                *of_language_models(budget.spent(reader.connection), settings.llm),
            ]

        names = readers.read(lambda reader: {reader.space, *space_names(reader.connection).values()}, caller)
        each = [structs.replace(caller, space=name) for name in sorted(names)] if caller.owner else [caller]
        samples = [
            *readers.read(look, caller),
            *(sample for one in each for sample in readers.read(lambda reader: _of_a_space(reader, counted), one)),
            *_of_the_spool(settings.data_dir / FOLDER),
            *of_backups(backups.kept(settings), datetime.now(UTC)),
        ]
        text = exposition(samples, timings)
        return Response(text, media_type=_TEXT)

    return router


_EVERYWHERE = Places(None, "everywhere", None)
_TEXT = "text/plain; version=0.0.4; charset=utf-8"


def _of_a_space(reader: Reader, counted: Counted) -> list[Sample]:
    connection, space, version = reader.connection, reader.space_id, version_of(reader)
    to_write, to_embed = outbox.backlog(connection, reader.live.stage2, space)
    letters = Counter(letter.projection or "facts" for letter in standing(reader).letters)
    found = [
        Sample("log_mark", mark(connection, space)),
        Sample("log_mark_age_seconds", mark_age(connection, space)),
        *(Sample("dead_letters", count, (model,)) for model, count in letters.items()),
        Sample("points_waiting", to_write),
        Sample("dense_waiting", to_embed),
        *(
            Sample("processor_work", getattr(each, status), (each.processor, status))
            for each in processor_work.standings(connection, space)
            for status in ("working", "done", "failed", "given_up")
        ),
        *of_worth(
            *counted.of(("worth", reader.space), version, lambda: (totals_of(reader, _EVERYWHERE), uses_of(reader)))
        ),
        *of_hindsight(
            counted.of(
                ("hindsight", reader.space),
                version,
                lambda: hindsights.counted(hindsights.records(reader, _EVERYWHERE)),
            )
        ),
    ]
    return [Sample(each.name, each.value, (reader.space, *each.labels)) for each in found]


def _of_the_database(found: Health) -> list[Sample]:
    shards = [((str(shard.stage), str(shard.shard)), shard) for shard in found.shards]
    return [
        Sample("log_position", found.last_position),
        *(Sample("shard_position", shard.position, at) for at, shard in shards),
        *(Sample("shard_lag", shard.lag, at) for at, shard in shards),
        Sample("unfolded_seconds", found.behind.seconds if found.behind is not None else 0),
        *_of_troubles(found),
        Sample("shards_halted", len(found.standing.halted)),
        Sample("slow_writers", len(found.standing.writers)),
        *([] if found.embedding_s is None else [Sample("dense_seconds_left", found.embedding_s)]),
        Sample("filling_waiting", found.filling.waiting if found.filling is not None else 0),
        *_of_the_archive(found.archive),
        *([] if found.servers.standby_s is None else [Sample("standby_behind_seconds", found.servers.standby_s)]),
        Sample("replay_running", found.replay is not None),
        Sample("replay_failed", found.failed),
        Sample("replay_differing", found.differed),
    ]


def _of_the_archive(found: WalArchive | None) -> Iterator[Sample]:
    if found is not None:
        yield Sample("archive_failing", bool(found.failed))
        yield Sample("archive_waiting_bytes", found.waiting)
        yield Sample("archive_waiting_seconds", found.unarchived_s)


def _of_troubles(found: Health) -> Iterator[Sample]:
    counted = Counter((trouble.kind, trouble.needs) for trouble in troubles(found))
    for kind in get_args(get_type_hints(Trouble)["kind"]):
        for needs in (True, False):
            yield Sample("troubles", counted[kind, needs], (kind, "yes" if needs else "no"))


def of_language_models(spent: budget.Spent, llm: Llm) -> list[Sample]:
    """What language models took of what they may take, by period and unit."""
    return [
        Sample(f"llm_{what}_{unit}", float(getattr(amounts, f"{period}_{unit}")), (period,))
        for what, amounts in (("spent", spent), ("allowed", llm))
        for period in ("daily", "monthly")
        for unit in ("usd", "tokens")
    ]


def of_worth(totals: dict[str, int], uses: Sequence[Use]) -> list[Sample]:
    """What memory was good for. Shares are for who asks."""
    found = []
    for memory in ("with_memory", "without_memory", "memory_withheld"):
        ended, succeeded = totals[f"episodes_{memory}"], totals[f"episodes_{memory}_succeeded"]
        found += [
            Sample("episodes", succeeded, (memory, "success")),
            Sample("episodes", ended - succeeded, (memory, "other")),
        ]
    lasted = lasting_fixes(totals)
    found += [Sample("fixes", lasted, ("yes",)), Sample("fixes", totals["errors_resolved"] - lasted, ("no",))]
    for use in uses:
        kind = use.kind or "other"
        found += [
            Sample("recalls", use.recalls, (kind,)),
            Sample("recalls_followed", use.followed, (kind,)),
            Sample("recalls_worth", use.worth, (kind,)),
            Sample("ratings", use.helpful, (kind, "yes")),
            Sample("ratings", use.ratings - use.helpful, (kind, "no")),
        ]
    return found


def of_hindsight(counts: Sequence[Count]) -> list[Sample]:
    """How often memory held what was needed, and whether it was recalled."""
    return [
        Sample("hindsight", value, (count.kind, recalled))
        for count in counts
        for recalled, value in (("yes", count.recalled), ("no", count.count - count.recalled))
    ]


def _of_the_spool(folder: Path) -> list[Sample]:
    refused = spool.refusals(folder)
    return [
        Sample("spool_deliveries", len(spool.spooled(folder))),
        Sample("spool_refused", refused.deliveries if refused else 0),
    ]


def of_backups(kept: KeptBackups, now: datetime) -> list[Sample]:
    every = kept.every.total_seconds() if kept.every else 0
    age = [] if kept.newest is None else [Sample("backup_age_seconds", (now - kept.newest).total_seconds())]
    return [*age, Sample("backup_interval_seconds", every)]


class Took(NamedTuple):
    """How long answers of one route took: percentiles in seconds, as exact as `BOUNDS`."""

    method: str
    route: str
    answers: int
    p50: float
    p95: float


class Timings:
    """How long requests took, by space, method, route and class of status: histograms since this process began."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, ...], Counter[int]] = {}
        self._sums: dict[tuple[str, ...], float] = {}

    def took(self, seconds: float, *labels: str) -> None:
        with self._lock:
            self._counts.setdefault(labels, Counter())[bisect_left(BOUNDS, seconds)] += 1
            self._sums[labels] = self._sums.get(labels, 0.0) + seconds

    def by_route(self) -> list[Took]:
        """Every route that was asked, whatever the status, those asked most first."""
        merged: dict[tuple[str, str], Counter[int]] = {}
        with self._lock:
            for (_, method, route, _), counts in self._counts.items():
                merged.setdefault((method, route), Counter()).update(counts)
        found = [
            Took(*at, counts.total(), _within(counts, 0.5), _within(counts, 0.95)) for at, counts in merged.items()
        ]
        return sorted(found, key=lambda took: (-took.answers, took.route, took.method))

    def lines(self, metric: Metric, space: str | None = None) -> Iterator[str]:
        """`space`: of that one alone."""
        with self._lock:
            counted = [
                (labels, Counter(counts), self._sums[labels])
                for labels, counts in self._counts.items()
                if space in (None, labels[0])
            ]
        for labels, counts, total in sorted(counted, key=lambda each: each[0]):
            named = _labelled(metric, labels)[1:-1]
            so_far = 0
            for at, bound in enumerate((*map(str, BOUNDS), "+Inf")):
                so_far += counts[at]
                yield f'memctl_{metric.name}_bucket{{{named},le="{bound}"}} {so_far}'
            yield f"memctl_{metric.name}_sum{{{named}}} {total:.6f}"
            yield f"memctl_{metric.name}_count{{{named}}} {so_far}"


def _within(counts: Counter[int], share: float) -> float:
    """Seconds within which that share of the answers came, taken to lie evenly between two bounds; the last bound where
    more took longer than any."""
    wanted, below = share * counts.total(), 0
    for at, (least, most) in enumerate(pairwise((0.0, *BOUNDS))):
        if below + counts[at] >= wanted:
            return least + (most - least) * (wanted - below) / counts[at]
        below += counts[at]
    return BOUNDS[-1]


class Timed:
    """Measures each request until its answer's first byte. What matches no route counts as `other`. `own`: the space
    that the owner means where none is named."""

    def __init__(self, app: ASGIApp, timings: Timings, own: str) -> None:
        self._app = app
        self._timings = timings
        self._own = own

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                took = time.perf_counter() - began
                caller: Caller = scope["state"]["caller"]
                space = caller.space or (self._own if caller.owner else "")
                self._timings.took(took, space, scope["method"], _route_of(scope), f"{message['status'] // 100}xx")
            await send(message)

        await self._app(scope, receive, sending if scope["type"] == "http" else send)


def _route_of(scope: Scope) -> str:
    """The path of the route that matched, `other` where none did. FastAPI may leave out what a router is included
    under."""
    path: str = getattr(scope.get("route"), "path", "")
    under = PREFIX if scope["path"].startswith(f"{PREFIX}/") and not path.startswith(f"{PREFIX}/") else ""
    return under + path if path else "other"


def exposition(samples: Iterable[Sample], timings: Timings, space: str | None = None) -> str:
    """All metrics as Prometheus reads them. `space`: how long answers took in that one alone."""
    by_name: dict[str, list[Sample]] = {}
    for sample in samples:
        by_name.setdefault(sample.name, []).append(sample)
    lines: list[str] = []
    for metric in METRICS:
        lines.append(f"# HELP memctl_{metric.name} {metric.meaning}")
        lines.append(f"# TYPE memctl_{metric.name} {metric.kind}")
        if metric.kind == "histogram":
            lines.extend(timings.lines(metric, space))
        for _, value, labels in by_name.pop(metric.name, ()):
            lines.append(f"memctl_{metric.name}{_labelled(metric, labels)} {value:.15g}")
    assert not by_name, f"METRICS lacks {', '.join(by_name)}"
    return "\n".join(lines) + "\n"


def _labelled(metric: Metric, values: tuple[str, ...]) -> str:
    if not values:
        return ""
    pairs = (f'{name}="{value}"' for name, value in zip(metric.labels, values, strict=True))
    return "{" + ",".join(pairs) + "}"
