"""`verify`: is everything that was recorded still there, and does everything that is shown rest on it?

The checks go along the way of an event: transcript and spool, log, those who read it, vectors. Each looks at what it
compares while everything goes on running; nothing is changed, unless drifted vectors are to be repaired.
"""

import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psycopg

from memctl.api.checks import accounting
from memctl.api.checks.check import Check, attempted, check, skipped
from memctl.api.reading.caller import OWNER
from memctl.api.reading.evidence import broken_quotes
from memctl.api.reading.reader import reader_of
from memctl.domain.events.event import Position, event_types
from memctl.domain.support.errors import MemctlError
from memctl.domain.support.wording import number
from memctl.infra.backup.receipts import unknown
from memctl.infra.database import Connection, DatabaseUnavailable, ReadModelsReplaced, connect, outage, outages
from memctl.infra.hooks.capture_policy import PassedOverTranscripts
from memctl.infra.log import audit, erase
from memctl.infra.log.mark import move_mark
from memctl.infra.log.spaces import at_home, space_names
from memctl.infra.readmodels import coverage, dead_letters, generations
from memctl.infra.readmodels.dead_letters import DeadLetter
from memctl.infra.readmodels.generations import Live
from memctl.infra.settings_model import Settings
from memctl.infra.vectors import CollectionMissing, QdrantClient, drift, outbox, store
from memctl.infra.vectors import models as vector_models
from memctl.infra.vectors.drift import Drift
from memctl.infra.vectors.models import VectorModel
from memctl.workers.rebuild.audit import audit as audit_rows

BEHIND_S = 60.0
"""A reader that has not read for longer than this what it may is behind; workers take a second or so."""

LOOKS = 3
"""How often a part is looked at, where connections are lost or read models replaced meanwhile."""

REPAIR_S = 60.0
"""How long a repair is waited for while points are being written."""

_RESTORE = "restore the database from a backup that is older than the damage; `memctl replay --all` does the rest"
_REPLAY = "run `memctl replay --all`"
_WORKERS = "see `memctl status` and the worker's log; `memctl up` starts what is down"

Progress = Callable[[str, int, int], None]
"""Is called with what is being checked, how much of it is done, and how much there is (0: unknown)."""


def for_its_log(settings: Settings) -> Settings:
    """The settings for the database that the space lives on: its log is what is proved. Raises: DatabaseUnavailable."""
    with at_home(settings, "memctl verify") as (_, there):
        return there


@dataclass
class Verification:
    """What is to be verified. `paths`: transcripts whose every line has to be in the log; without any, those that were
    ever read, as far as they were read."""

    settings: Settings
    paths: tuple[Path, ...] = ()
    repair: bool = False
    progress: Progress = lambda what, done, of: None
    events: int = field(default=0, init=False)
    """Events that were found in the log."""

    def checks(self) -> Iterator[Check]:
        """Carry the checks out, one after the other. Raises: DatabaseUnavailable where there is no log to look at."""
        with outages(), self._connection() as connection:
            mark = move_mark(connection)
        parts: tuple[tuple[str, Callable[[Connection], Iterator[Check]]], ...] = (
            ("log", lambda connection: self._log(connection, mark)),
            ("readers", lambda connection: self._readers(connection, mark)),
            ("vectors", self._vectors),
            ("transcripts", self._transcripts),
        )
        for part, checks in parts:
            yield from attempted(part, partial(self._looked_at, checks))
        yield from attempted("spool", lambda: spool_checks(self.settings.data_dir / "spool"))

    def _connection(self) -> Connection:
        return connect(self.settings.require("database_url"), name="memctl verify")

    def _looked_at(self, checks: Callable[[Connection], Iterator[Check]]) -> Iterator[Check]:
        """The checks of a part.

        The checks that are left run once more if the connection was lost, or if a gap is found in read models that
        were replaced meanwhile. Neither case says anything about what is stored.
        """
        reported: set[str] = set()
        for left in reversed(range(LOOKS)):
            try:
                with self._connection() as connection:
                    live = _live(connection)
                    for one in checks(connection):
                        if one.result == "gap" and left and _live(connection) != live:
                            break
                        if one.name not in reported:
                            reported.add(one.name)
                            yield one
                    else:
                        return
            except psycopg.Error as problem:
                if not left or type(outage(problem)) not in (DatabaseUnavailable, ReadModelsReplaced):
                    raise

    def _log(self, connection: Connection, mark: Position) -> Iterator[Check]:
        yield from self._appended(connection, mark)
        yield from self._decoded(connection, mark)
        yield self._positions(connection, mark, self.events)
        yield from self._erased(connection)

    def _appended(self, connection: Connection, mark: Position) -> Iterator[Check]:
        """That each event is what was appended, and where."""
        hashed = audit.hashed(connection, mark, lambda done, of: self.progress("hashing payloads", done, of))
        self.events = hashed.events
        erased = f", {hashed.erased:,} erased" if hashed.erased else ""
        yield check(
            "log", "payload hashes", number(hashed.events, "event") + erased,
            [f"position {at}: the payload is not the one that was appended" for at in hashed.altered.first],
            total=hashed.altered.count, advice=_RESTORE, events=hashed.events, erased=hashed.erased,
        )  # fmt: skip
        if hashed.unreadable.count:
            yield check(
                "log", "damaged pages", "Postgres cannot read them", hashed.unreadable.first,
                total=hashed.unreadable.count, advice=_RESTORE,
            )  # fmt: skip
        yield check(
            "log", "deliveries", f"{number(hashed.events, 'event')} entered by id",
            (f"position {at}: no event, no entry of it, or two" for at in audit.astray(connection, mark)),
            advice=_RESTORE,
        )  # fmt: skip
        yield check(
            "log", "shards", f"{number(hashed.events, 'event')} by their streams",
            [f"position {at}: its shard is not that of its stream" for at in hashed.misplaced.first],
            total=hashed.misplaced.count, advice=_RESTORE,
        )  # fmt: skip

    def _decoded(self, connection: Connection, mark: Position) -> Iterator[Check]:
        """That this memctl can read each event."""
        decoded = audit.decoded(connection, mark, lambda done, of: self.progress("decoding events", done, of))
        variants = f", {decoded.variants:,} of them variants" if decoded.variants else ""
        yield check(
            "log", "event ids", number(decoded.events, "dedupe key") + variants,
            [f"position {at}: the id is not the one of its dedupe key" for at in decoded.misnamed.first],
            total=decoded.misnamed.count, advice=_RESTORE, variants=decoded.variants,
        )  # fmt: skip
        stranded = audit.stranded_variants(connection, mark)
        yield check(
            "log", "variants", number(decoded.variants, "variant"),
            (f"position {at}: the first delivery is not in the log" for at in stranded),
            advice=_RESTORE,
        )  # fmt: skip
        yield check(
            "log", "event types", f"{len(decoded.types)} of {len(event_types())} known types",
            decoded.unknown.first, total=decoded.unknown.count,
            advice="upgrade memctl: a newer one wrote these", types=len(decoded.types),
        )  # fmt: skip
        yield check(
            "log", "payloads", f"{decoded.events:,} decoded", decoded.undecodable.first,
            total=decoded.undecodable.count, advice="upgrade memctl; `memctl dlq list` names what folds cannot take",
        )  # fmt: skip

    def _erased(self, connection: Connection) -> Iterator[Check]:
        """That what was to be forgotten is, and nothing else can be changed."""
        receipts = erase.receipts(connection)
        pruned = sum(bool(each.scope.rule) for each in receipts)
        yield check(
            "log", "forgetting", number(len(receipts), "receipt") + (f", {pruned:,} by age" if pruned else ""),
            [*(f"receipt {each.id} of {each.begun_at:%Y-%m-%d %H:%M} was begun and not finished"
               for each in receipts if each.finished_at is None),
             *(f"receipt {each.id} of {each.begun_at:%Y-%m-%d %H:%M} is not in the database, which was set back in time"
               for each in unknown(connection, self.settings.data_dir))],
            advice="run `memctl forget --resume`",
        )  # fmt: skip
        yield check(
            "log", "guards", "5 triggers, a unique index and a sequence", audit.open_guards(connection),
            advice="the log was open to changes: compare it with a backup, then run `memctl init` on a fresh one",
        )  # fmt: skip

    def _positions(self, connection: Connection, mark: Position, events: int) -> Check:
        found = audit.positions(connection, mark)
        wrong = []
        if found.mark > found.handed_out:
            wrong.append(f"the mark is {found.mark}, and only {found.handed_out} positions were ever handed out")
        if found.highest > found.handed_out:
            wrong.append(f"an event stands at {found.highest}, and only {found.handed_out} positions were handed out")
        if found.history_disorder:
            wrong.append(f"{number(found.history_disorder, 'entry', 'entries')} of the mark's history went backwards")
        # A hole proves nothing by itself: the sequence goes on over what rolls back and over duplicates.
        holes = mark - events
        counted = f"up to {mark:,}; {holes:,} never used (duplicates, rolled back)" if mark else "none yet"
        if found.above:
            counted += f"; {found.above:,} not settled yet"
        return check("log", "positions", counted, wrong, advice=_RESTORE, mark=mark, holes=holes, above=found.above)

    def _readers(self, connection: Connection, mark: Position) -> Iterator[Check]:
        live = generations.live(connection)
        wrong = coverage.incomplete(connection, live)
        yield check("readers", "live generations", f"{live.stage1} and {live.stage2}", wrong, advice=_REPLAY)
        outdated = ["they were folded by other rules than this memctl has"] if generations.stale(connection) else []
        yield check(
            "readers", "rules", "those of the live rows", outdated,
            advice="workers rebuild by themselves within seconds; else run `memctl replay --all`",
        )  # fmt: skip
        yield from self._shards(connection, live, mark)
        letters = yield from self._letters(connection, live)
        if wrong or outdated:
            why = "the live generations are not whole" if wrong else "they were folded by other rules"
            yield skipped("readers", "streams", why)
            yield skipped("readers", "rows", why)
            return
        self.progress("comparing streams", 0, 0)
        parked = {(at.target.space_id, at.target.key) for at in letters if not at.target.projection and at.target.key}
        covered = coverage.coverage(connection, parked)
        yield check(
            "readers", "streams",
            f"{number(covered.read, 'session')}, {covered.folded_again} of them folded again",
            [
                *(f"{stream}: read, and has no rows" for stream in covered.missing),
                *(f"{stream}: has rows, and no event" for stream in covered.unfounded),
                *covered.unfoldable,
                *(f"{stream}: its rows are not what its events give" for stream in covered.differing),
            ],
            advice=_REPLAY, streams=covered.read, folded_again=covered.folded_again,
        )  # fmt: skip
        yield check(
            "readers", "evidence", f"of {number(covered.facts, 'fact')}", covered.uncited,
            advice=f"these events were deleted from the log: {_RESTORE}", facts=covered.facts,
        )  # fmt: skip
        quotes, broken = broken_quotes(reader_of(connection, self.settings.space, OWNER))
        yield check(
            "readers", "quotes", f"{number(quotes, 'quote')} of verified claims", broken,
            advice="`memctl explain` shows what rests on them, `memctl reject` drops it",
            quotes=quotes,
        )  # fmt: skip
        rows = audit_rows(connection, self.progress)
        yield check(
            "readers", "routes", f"of all {number(rows.sources, 'source')} of stage 2",
            rows.routes.first, total=rows.routes.count, advice=_REPLAY, sources=rows.sources,
        )  # fmt: skip
        yield check(
            "readers", "rows",
            f"all {number(rows.rows, 'row')} of {number(rows.read_models, 'read model')} have sources,"
            f" {rows.folded_again:,} by a sample folded again",
            [*rows.unfounded.first, *rows.differing.first],
            total=rows.unfounded.count + rows.differing.count, advice=_REPLAY,
            rows=rows.rows, folded_again=rows.folded_again,
        )  # fmt: skip

    def _shards(self, connection: Connection, live: Live, mark: Position) -> Iterator[Check]:
        found = coverage.readers(connection, live, mark)
        yield check(
            "readers", "offsets",
            f"{number(len(found), 'shard')} up to {min((reader.position for reader in found), default=0):,}",
            _behind(found), advice=_WORKERS,
        )  # fmt: skip
        held = sum(reader.lease_s is not None and reader.lease_s > 0 for reader in found)
        yield check("readers", "leases", f"{held or 'none'} held", _odd_leases(found), advice=_WORKERS)

    def _letters(self, connection: Connection, live: Live) -> Generator[Check, None, list[DeadLetter]]:
        every = dead_letters.parked(connection, live.stage1, live.stage2)
        # What only took long is folded apart, or tried, by the workers.
        letters = [letter for letter in every if not letter.to_be_tried]
        halts = dead_letters.halts(connection, live)
        yield check(
            "readers", "dead letters",
            f"{len(letters):,} parked, {len(every) - len(letters):,} to be tried, {number(len(halts), 'shard')} halted",
            [
                *(f"{letter.target}: {letter.fault.error} at position {letter.fault.position},"
                  f" {letter.fault.waiting:,} waiting behind" for letter in letters),
                *(f"stage {halt.stage}, shard {halt.shard}: {halt.error}: {halt.message}" for halt in halts),
            ],
            advice="`memctl dlq list` has more; then `memctl dlq retry` or `memctl dlq drop`",
            parked=len(letters), halted=len(halts),
        )  # fmt: skip
        return letters

    def _vectors(self, connection: Connection) -> Iterator[Check]:
        live = generations.live(connection)
        queued, dense = outbox.backlog(connection, live.stage2)
        yield check(
            "vectors", "outbox", f"{number(queued, 'point')} to write, {dense:,} to embed", queued=queued, dense=dense
        )
        models = vector_models.models(connection)
        if (made := outbox.filling(connection, live.stage2)) is not None:
            detail = f"of {made.model}: {made.waiting:,} of {number(made.points, 'point')} to embed"
            yield check("vectors", "model to come", detail, waiting=made.waiting)
        url = self.settings.require("qdrant_url")
        client = store.connect(url, self.settings.qdrant_api_key)
        try:
            yield self._points(connection, client, live.stage2, models.serving, "points")
            if models.filling is not None:
                yield self._points(connection, client, live.stage2, models.filling, "points to come")
        finally:
            client.close()

    def _points(
        self, connection: Connection, client: QdrantClient, generation: int, model: VectorModel | None, name: str
    ) -> Check:
        """A model's collection against the rows."""
        try:
            found = Drift()
            for part in drift.scan(connection, client, generation, model):
                found.add(part)
                self.progress("comparing points", found.wanted, 0)
                if self.repair:
                    drift.queue(connection, generation, part)
            if not (found.keys and self.repair and self._repaired(connection, generation)):
                return _points(found, name)
            repaired, found = len(found.keys), Drift()
            for part in drift.scan(connection, client, generation, model):
                found.add(part)
            return _points(found, name, repaired)
        except CollectionMissing:
            return check(
                "vectors", name, "none", ["the collection is not there"],
                advice="the worker builds it from `vector_points` and the cache; see `memctl status`",
            )  # fmt: skip

    def _repaired(self, connection: Connection, generation: int) -> bool:
        """Whether the worker has written what was queued, which is waited for as long as it gets on."""
        left, since = outbox.backlog(connection, generation)[0], time.monotonic()
        while left and time.monotonic() - since < REPAIR_S:
            time.sleep(0.2)
            now = outbox.backlog(connection, generation)[0]
            self.progress("points to write", 0, now)
            if now != left:
                left, since = now, time.monotonic()
        return not left

    def _transcripts(self, connection: Connection) -> Iterator[Check]:
        space = next((n for n, name in space_names(connection).items() if name == self.settings.space), None)
        if space is None:
            yield skipped("transcripts", "lines", f"there is no space {self.settings.space!r} yet")
            return
        done = 0

        def progress(path: Path, size: int) -> None:
            nonlocal done
            done += size
            self.progress("reading transcripts", done, 0)

        passed_over = PassedOverTranscripts(self.settings.data_dir)
        ledger = accounting.account(connection, space, self.paths, passed_over=passed_over, progress=progress)
        if not ledger.files and not ledger.gone:
            yield skipped("transcripts", "lines", "no transcript has been read yet")
            return
        counted = f"{ledger.lines:,} = {ledger.with_events:,} with events + {ledger.ignored:,} ignored"
        for count, word in ((ledger.blank, "blank"), (ledger.bad, "bad")):
            counted += f" + {count:,} {word}" if count else ""
        counted += f"; {ledger.forgotten:,} of them forgotten" if ledger.forgotten else ""
        counted += f"; {ledger.passed_over:,} of them said while saving was off" if ledger.passed_over else ""
        yield check(
            "transcripts", "lines", counted,
            [f"{line}: not in the log" for line in ledger.missing_named],
            total=ledger.missing,
            advice="run `memctl ingest --again FILE`, which adds what is missing, or says why a line is not kept",
            files=ledger.files, lines=ledger.lines, with_events=ledger.with_events, events=ledger.events,
            ignored=ledger.ignored, blank=ledger.blank, bad=ledger.bad, missing=ledger.missing, unread=ledger.unread,
        )  # fmt: skip
        files = number(ledger.files, "file")
        if ledger.unread:
            files += f", {ledger.unread_files:,} of them grown: {number(ledger.unread, 'line')} not read yet"
        if self.paths:  # what a person named is to be there; what was read once may go
            yield check("transcripts", "files", files, ledger.gone, advice="look at these files", gone=len(ledger.gone))
        else:
            gone = f"; {len(ledger.gone):,} gone or unreadable since, their events kept" if ledger.gone else ""
            yield check("transcripts", "files", files + gone, gone=len(ledger.gone))


def _live(connection: Connection) -> generations.Live | None:
    """The live generations; None where there are none yet."""
    with suppress(MemctlError):
        return generations.live(connection)
    return None


def spool_checks(folder: Path) -> Iterator[Check]:
    """What waits in the spool, what could not be read or kept there, and what it had no room for."""
    found = accounting.spool_state(folder)
    late = [f"the oldest has waited for {found.oldest_s / 60:.0f} min"] if found.oldest_s > BEHIND_S else []
    yield check(
        "spool", "deliveries", f"{found.waiting:,} waiting", late,
        advice="start memctl with `memctl up`: the door drains them", waiting=found.waiting,
    )  # fmt: skip
    yield check(
        "spool", "set aside", f"{number(len(found.aside), 'file')}", [f"{folder / name}" for name in found.aside],
        advice="look at these files, and delete them once they are of no use", aside=len(found.aside),
    )  # fmt: skip
    last = time.strftime("%Y-%m-%d %H:%M", time.localtime(found.refused_at / 1e6))
    lost = [f"{number(found.refused, 'delivery', 'deliveries')} not kept (no room, or over 64 MiB), the last at {last}"]
    yield check(
        "spool", "refusals", f"{found.refused:,}", lost if found.refused else (),
        advice=f"`memctl ingest` reads from transcripts what was lost; then delete {folder / 'refused'}",
        refused=found.refused,
    )  # fmt: skip


def _points(found: Drift, name: str, repaired: int = 0) -> Check:
    counted = f"{number(found.stored, 'point')} for {number(found.wanted, 'row')}"
    if found.queued or found.waiting:
        counted += f"; {found.queued + found.waiting:,} under way"
    if repaired:
        counted += f"; {repaired:,} repaired"
    kinds = (
        (found.missing, "missing"), (found.differing, "not as it should be"),
        (found.without_dense, "without its dense vector"), (found.extra, "should not be there"),
    )  # fmt: skip
    return check(
        "vectors", name, counted,
        (f"{key[1]}: {what}" for keys, what in kinds for key in keys),
        advice="run `memctl verify --repair`, or wait for the worker's own hourly scan",
        stored=found.stored, wanted=found.wanted, missing=len(found.missing), differing=len(found.differing),
        without_dense=len(found.without_dense), extra=len(found.extra), repaired=repaired,
    )  # fmt: skip


def _behind(found: Collection[coverage.ShardReader]) -> Iterator[str]:
    mark = max((reader.limit for reader in found if reader.stage == 1), default=0)  # as they may have moved it since
    for reader in found:
        name = f"stage {reader.stage}, shard {reader.shard}"
        if reader.position > mark:
            yield f"{name}: at {reader.position:,}, beyond the mark at {mark:,}"
        elif reader.behind_s is not None and reader.behind_s > BEHIND_S:
            yield f"{name}: {reader.limit - reader.position:,} positions behind, for {reader.behind_s / 60:.0f} min"


def _odd_leases(found: Iterable[coverage.ShardReader]) -> Iterator[str]:
    longest = 2 * generations.LEASE.total_seconds()
    for reader in found:
        name = f"stage {reader.stage}, shard {reader.shard}"
        if (reader.owner is None) != (reader.lease_s is None):
            yield f"{name}: an owner without a lease, or a lease without an owner"
        elif reader.lease_s is not None and reader.lease_s > longest:
            yield f"{name}: {reader.owner} holds it for {reader.lease_s:,.0f} s more"
