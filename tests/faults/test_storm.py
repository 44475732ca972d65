"""Everything at once from outside: real processes and commands at one database of two spaces, which share sessions.

Deliveries come by doors, a relay, the API and transcripts, often by two of them at the same moment, and by appends
that roll back or stay open, most of all while a replay switches. Meanwhile commands are carried out as a user would
type them (replays, rollbacks, looks at the past, forgetting, prunes, imports of exports, merges, `dlq`, consolidation),
many of them killed; workers, doors, APIs, Redis and the vector server are killed, stopped and started again. All of
them run an installation of which some folds fail while a file says so; another one, which folds by other rules, replays
now and then.

Then there is peace: what was left half done is taken up, and the rows have to be those of a rebuild in any number of
shards, and those of a log that was told the same in another order.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import fates
import msgspec
import pytest
import servers
from forking import Forked, source
from histories import digests, drained, example
from soak import seeded
from storming import LOST, ROOT, SPACES, Storm
from unit.test_history_laws import history
from vector_server import ServerProcess, vector_server_process
from waiting import until
from working import caught_up

from memctl.api.write.exporting import ExportLine, _event, export
from memctl.domain.events.event import NewEvent
from memctl.domain.events.observations import event_id_of
from memctl.domain.events.processor_events import InsightExtracted
from memctl.infra.database import Connection, connect
from memctl.infra.log.append import append
from memctl.infra.log.spaces import space_id
from memctl.infra.readmodels import dead_letters, generations
from memctl.infra.redaction import prepare

REFUSALS = (
    "another replay is running", "no former generation", "is being forgotten", "a rebuild of the read models is",
    "other read models have become live", "has held shard", "took over the lease", "has not reached position",
    "the rebuild stopped", "has been writing the points", "postgres went away", "postgres does not answer",
    "memctl does not answer", "folded by other rules", "has read less", "old sessions are being pruned",
    "the vector store", "cannot be folded", "no dead letter", "others have become live",
    "is not folded yet", "something was forgotten while",
)  # fmt: skip
"""What commands say that came at a bad moment, or had nothing to do."""


UNDER_WAY = {"forgetting", "rules", "points", "dead", "deliveries", "qdrant", "vectors", "leases"}
"""What `verify` may find missing meanwhile: forgetting that was killed, vectors while their server is away,
rows of the other installation's rules, leases given before the clock was set back."""


class Commands:
    """Commands as a user types them, and what is made of what they say."""

    def __init__(self, storm: Storm) -> None:
        self.storm = storm

    def meddle(self, luck: random.Random) -> None:
        while not self.storm.over.is_set():
            space = luck.choice(SPACES)
            arguments, theirs = self.chosen(space, luck)
            if not arguments:
                continue
            killed = luck.uniform(0.05, 3.0) if luck.random() < 0.35 else 0.0
            if arguments == ("worker",):
                killed = luck.uniform(2.0, 6.0)
            code, out, said = self.storm.run(space, *arguments, kill_after=killed, theirs=theirs)
            self.judge(arguments, code, out, said)

    def judge(self, arguments: tuple[str, ...], code: int, out: str, said: str) -> None:
        what = " ".join(each for each in arguments[:3] if not re.search(r"[0-9a-f]{8}|/", each))
        last = next((line for line in said.strip().splitlines() if line.lower().startswith("error")), said[-300:])
        if code == -signal.SIGKILL:
            self.storm.count(f"{what}: killed")
        elif code == 0:
            self.storm.count(what)
        elif arguments == ("verify",) and gaps_of(out) <= UNDER_WAY:
            self.storm.count("verify: under way")
        elif "DIFFERS" in out and self.storm.sickens:  # what was parked can be folded by now
            self.storm.count(f"{what}: differs from what was parked")
        elif "Traceback" in said or "differ" in out.lower() or (code not in (2, 3) and not told_no(said)):
            self.storm.wrong.append(f"{arguments}: {code}\n{out}\n{said[-3000:]}")
        else:
            self.storm.count(f"{what}: {last.strip()[:90]}")

    def chosen(self, space: str, luck: random.Random) -> tuple[tuple[str, ...], bool]:
        number = self.storm.spaces[space]
        file = self.storm.folder / f"{luck.choice(SPACES) if self.storm.crosses else space}.jsonl"
        way = luck.choice(
            ["replay"] * 7 + ["theirs", "their worker", "rollback", "past", "past", "sicken", "sicken", "retry"]
            + ["retry", "drop", "session", "id", "match", "before", "resume", "prune", "prune", "undo", "undo"]
            + ["export", "import", "import", "merge", "split", "consolidate", "maintain", "ingest", "ingest"]
            + ["verify", "reindex"]
        )  # fmt: skip
        match way:
            case "replay" | "theirs":
                what = luck.choice((("--all", "--verify"), ("--all", "--verify", "--keep-live"), ("tasks", "--verify"),
                                    ("--all", "--shards", luck.choice(("1", "3", "16")))))  # fmt: skip
                return ("replay", *what, "--processes", luck.choice("12")), way == "theirs"
            case "their worker":  # which rebuilds by its rules, as soon as it sees others
                return ("worker",), True
            case "rollback":
                return ("replay", "--rollback"), False
            case "past":
                with contextlib.suppress(*LOST), connect(self.storm.url) as connection:
                    last = (connection.execute("SELECT position FROM memctl.mark").fetchone() or (0,))[0]
                    return ("replay", "--all", "--to", str(luck.randint(0, last))), False
            case "sicken":
                if not self.storm.sickens:
                    return (), False
                if self.storm.sick.exists():
                    self.storm.sick.unlink(missing_ok=True)
                else:
                    name = luck.choice(("tasks", "sessions", "memories", "insights", "episodes", "strategies", "stats"))
                    self.storm.sick.with_suffix(".new").write_text(
                        f"{name} {luck.choice(('pnpm', 'cart', 'number', 'tests'))}"
                    )
                    self.storm.sick.with_suffix(".new").rename(self.storm.sick)
                    self.storm.count(f"sick: {name}")
                return (), False
            case "retry":
                return ("dlq", "retry", "--all"), False
            case "drop":
                with contextlib.suppress(*LOST), connect(self.storm.url) as connection:
                    found = connection.execute(
                        "SELECT letter FROM memctl.dead_letters ORDER BY random() LIMIT 1"
                    ).fetchone()
                    return (("dlq", "drop", str(found[0]), "--reason", "the storm", "--yes") if found else ()), False
            case "session":
                key = self.storm.some_key("sessions", number, luck)
                return (("forget", "--session", key, "--yes") if key else ()), False
            case "id":
                key = self.storm.some_key(luck.choice(("memories", "episodes", "tasks", "strategies")), number, luck)
                return (("forget", "--id", key, "--yes") if key else ()), False
            case "match":
                return ("forget", "--match", f"number {luck.randint(10, 99)}", "--yes"), False
            case "before":
                return (
                    "forget",
                    "--before",
                    f"2026-03-02T{luck.choice(('11:00', '12:00:03'))}",
                    "--yes",
                ), False
            case "resume":
                return ("forget", "--resume"), False
            case "prune":
                return ("prune", "--older-than", luck.choice(("1", "200")), "--yes"), False
            case "undo":
                mine = [each.split()[1] for each in self.storm.pinned if each.startswith(space)]
                return (("undo", luck.choice(mine)) if mine else ()), False
            case "export":
                return ("export", str(self.storm.folder / f"{space}.jsonl")), False
            case "import":
                return (("import", str(file)) if file.exists() else ()), False
            case "merge":
                return ("project", "merge", *luck.sample(fates.PLACES[:6], 2)), False
            case "split":
                return ("project", "split", luck.choice(fates.PLACES[:6])), False
            case "consolidate":
                return ("consolidate", "--force"), False
            case "maintain":
                return (luck.choice(("maintain", "reflect")),), False
            case "ingest":
                return ("ingest", str(self.storm.folder / "transcripts")), False
            case "verify":
                return ("verify",), False
            case "reindex":
                return ("reindex",), False
        return (), False


def settle(storm: Storm, log: Connection) -> None:
    """Take up what was left half done, and wait until all is folded."""
    storm.sick.unlink(missing_ok=True)
    for each in storm.processes:
        each.again()
    log.execute("UPDATE memctl.offsets SET lease_until = '-infinity' WHERE lease_until IS NOT NULL")
    until(lambda: not storm.waiting(), "empty spools")
    storm.ends("default", "replay", "--all")
    for name in SPACES:
        storm.ends(name, "forget", "--resume")
    storm.ends("default", "dlq", "retry", "--all")
    until(lambda: caught_up(log), "the end of the log")
    live = generations.live(log)
    assert not dead_letters.parked(log, live.stage1, live.stage2)


def barred(log: Connection, space: int, session: str, at: int) -> bool:
    """Whether a session was forgotten up to that moment, or later."""
    stones = log.execute(
        "SELECT 1 FROM memctl.tombstones WHERE space_id = %s AND kind = 'session' AND value = %s"
        " AND until >= to_timestamp(%s / 1e6)",
        [space, f"session/claude-code/{session}", at],
    )
    return stones.fetchone() is not None


def spans(event: NewEvent) -> set[UUID]:
    """The events whose words an event quotes."""
    claims = event.payload.claims if isinstance(event.payload, InsightExtracted) else ()
    return {claim.span.event for claim in claims if claim.span is not None}


def gaps_of(out: str) -> set[str]:
    """What `verify` found a gap in, beside rows and streams that cannot be folded for now."""
    found = set(re.findall(r"GAP  (\w+)", out))
    return found - {"rows", "streams"} if "cannot be folded" in out else found


def told_no(said: str) -> bool:
    return any(each in said.lower() for each in REFUSALS)


def told_elsewhere(storm: Storm, server: str, template: str, log: Connection) -> dict[str, tuple[int, str]]:
    """The digests of a log that was told what stands here, in another order."""
    events: list[tuple[int, NewEvent]] = []
    for name, number in storm.spaces.items():
        lines: list[bytes] = []
        export(log, name, lines.append)
        events += [(number, _event(msgspec.json.decode(line, type=ExportLine), {})) for line in lines[1:-1]]
    storm.luck.shuffle(events)
    with servers.fresh_database(server, template=template) as url, connect(url) as other:
        assert {name: space_id(other, name) for name in SPACES} == storm.spaces
        for number, event in events:
            append(other, number, [event])
        drained(url)
        return digests(other)


SECONDS = float(os.environ.get("MEMCTL_TEST_STORM_S", "40"))


@pytest.fixture
def shards() -> None:
    """The storm's own installation makes the first read models."""


@pytest.fixture
def own_vectors(tmp_path: Path) -> Iterator[ServerProcess]:
    with vector_server_process(tmp_path / "vectors") as server:
        yield server


def test_what_ends_before_it_prints_has_printed_nothing(tmp_path: Path) -> None:
    """As a command that is killed before it opened what it prints to."""
    out, said = tmp_path / "out", tmp_path / "said"
    with tempfile.TemporaryDirectory(prefix="memctl-test-") as folder, source(Path(folder), tmp_path) as listens:
        command = Forked(listens)
        command.start("--version", environment={}, cwd=tmp_path / "nowhere", out=out, said=said)
        assert command.wait(60) == 1
        command.close()
    assert (out.read_text(), said.read_text()) == ("", "")


@seeded("MEMCTL_TEST_STORM", "two minutes")
def test_whatever_processes_and_commands_meet_no_read_model_skips_repeats_or_differs(
    seed: int,
    database_url: str,
    own_vectors: ServerProcess,
    postgres_server: str,
    templates: servers.Templates,
    tmp_path: Path,
) -> None:
    luck = random.Random(seed)
    told = [prepare(event) for event in fates.arriving(luck, history(luck, 40) + history(luck, 40))]
    # Spans name events, of which each space has its own, and which `history` takes from a log in memory.
    crosses, known = luck.random() < 0.5, {event_id_of(1, event.dedupe_key) for event in told}
    told = [event for event in told if not spans(event) or (not crosses and spans(event) <= known)]
    # Who reads claims out of words cites them, or forgetting the words would leave the claims.
    told = [msgspec.structs.replace(event, sources=(*event.sources, *spans(event))) for event in told]
    told += [event for number in range(4) for event in example(number, day=number + 2)]
    transcripts = tmp_path / "transcripts"
    transcripts.mkdir()
    text = (ROOT / "infra" / "example" / "session.jsonl").read_text(encoding="utf-8")
    for number in range(3):  # the first one as the events above tell it
        (transcripts / f"{number}.jsonl").write_text(text.replace("3f6f1d52", f"{number:08d}"))
    storm = Storm(luck, tmp_path, database_url, own_vectors, crosses=crosses)
    commands = Commands(storm)

    def draw() -> random.Random:
        return random.Random(luck.random())

    try:
        with ThreadPoolExecutor(8) as pool:
            telling = [pool.submit(storm.append, told[n::2], draw()) for n in range(2)]
            others = [
                pool.submit(each, draw())
                for each in (storm.knock, storm.state, commands.meddle, commands.meddle, commands.meddle)
            ]
            try:
                storm.disturb(SECONDS)
            finally:
                storm.over.set()
                for each in storm.processes:
                    each.again()
            for each in (*telling, *others):
                each.result(400)
        storm.wrong += storm.unexpected()
        with connect(database_url) as log:
            check(storm, log, postgres_server, templates)
    finally:
        print(*storm.account(), sep="\n---\n")  # shown where it fails
        storm.close()
    assert not storm.wrong


def check(storm: Storm, log: Connection, server: str, templates: servers.Templates) -> None:
    settle(storm, log)
    for each in storm.processes:  # workers go on consolidating
        each.kill()
    storm.ends("default", "replay", "--all", "--verify")
    rows = digests(log)
    for name in SPACES:
        storm.ends(name, "verify")
    for count in ("16", "1"):
        storm.ends("default", "replay", "--all", "--verify", "--shards", count)
        assert digests(log) == rows, f"in {count} shards"
    erased: set[UUID] = {row[0] for row in log.execute("SELECT unnest(erased) FROM memctl.receipts")}
    there = set(
        log.execute("SELECT space_id, coalesce(variant_of, event_id) FROM memctl.events WHERE payload IS NOT NULL")
    )
    kept = {each for each in storm.acknowledged if each[1] not in erased}
    print(f"{len(kept)} told and kept, {len(there)} there, {len(erased)} forgotten")
    # A door takes what it has yet to tell, and the session may be forgotten meanwhile.
    lost = {each for each in kept - there if each not in storm.hooks or not barred(log, each[0], *storm.hooks[each])}
    assert not lost, f"acknowledged, and not there: {sorted(map(str, lost))[:10]}"
    assert told_elsewhere(storm, server, templates.live(3), log) == rows
