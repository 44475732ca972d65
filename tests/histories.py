"""Whole sessions for tests: the example session under other names, and the real ones where they lie beside."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import published
import pytest
import servers
from draining import catch_up
from events import NOON, observed
from transcript_files import format_of, parse_file

from memctl.domain.events.core_memory import CoreMemoryAppended, CoreMemoryReplaced
from memctl.domain.events.event import Micros, NewEvent, Payload
from memctl.domain.events.event_order import prompt_about
from memctl.domain.events.facts import Lesson, fact_id
from memctl.domain.events.feedback import (
    ConditionResolved,
    KnowledgeRejected,
    KnowledgeVerified,
    MemoryPinned,
    MemoryRated,
)
from memctl.domain.events.file_checks import FileObserved
from memctl.domain.events.observations import (
    CommitRecorded,
    Observation,
    PromptSubmitted,
    ResponseReceived,
    TagRecorded,
    ToolCalled,
    ToolReturned,
)
from memctl.domain.events.processor_events import StrategyDistilled
from memctl.domain.events.recalls import MemoryRecalled, RecalledMemory
from memctl.domain.knowledge.consolidation import STREAM as CONSOLIDATION
from memctl.domain.knowledge.consolidation import (
    ConsolidationUndone,
    ContradictionFound,
    Member,
    MemoriesMerged,
    MemoryPruned,
    MemorySuperseded,
)
from memctl.domain.knowledge.forget_requests import ForgetRequested
from memctl.domain.knowledge.reflections import ReflectionMade
from memctl.domain.language.notes import MemoryNoted
from memctl.domain.projects.identity import ProjectIdentified, ProjectMerged, ProjectSplit
from memctl.infra.database import Connection, connect
from memctl.infra.log.append import append
from memctl.infra.readmodels import facts, generations
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.readmodels.generations import Live
from memctl.infra.redaction import prepare
from memctl.infra.transcripts.claude import Claude
from memctl.infra.transcripts.files import discover
from memctl.infra.transcripts.reading import parse_lines, raw_lines
from memctl.projections.kernel import projections
from memctl.workers.folding.drain import Drainer

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "infra" / "example" / "session.jsonl"

_SESSION = "3f6f1d52-6c0e-4b7e-9d6f-2f6b1f6b8a01"


def example(number: int = 0, day: int = 2) -> list[NewEvent]:
    """The example session's events, as a session of its own for each number, on that day of March 2026."""
    return list(_example(number, day))


@cache
def _example(number: int, day: int) -> tuple[NewEvent, ...]:
    text = EXAMPLE.read_text(encoding="utf-8").replace(_SESSION, f"{number:08d}{_SESSION[8:]}")
    text = text.replace("2026-03-02T", f"2026-03-{day:02d}T").replace('"uuid": "', f'"uuid": "{number:04d}-')
    text = text.replace('"parentUuid": "', f'"parentUuid": "{number:04d}-').replace("toolu_ex", f"toolu_{number}ex")
    parsed = parse_lines(raw_lines(io.BytesIO(text.encode())), Claude())
    return tuple(prepare(event) for line in parsed for event in line.events)


def workshop(number: int = 0) -> list[NewEvent]:
    """A session that rewrites code, names libraries and services, commits, and hears how its user likes it."""
    session, location = f"workshop-{number}", f"/home/dana/shop/part{number}"
    events: list[NewEvent] = []

    def say(payload: Observation, actor: str) -> None:
        line = f"{session}-{len(events)}"
        payload = msgspec.structs.replace(payload, line=line)
        events.append(
            observed(payload, session=session, at=3600 * number + len(events), actor=actor, location=location)
        )

    def use(tool: str, given: dict[str, Any], answer: str = "done") -> None:
        call = f"{session}-call-{len(events)}"
        say(ToolCalled(line="", tool=tool, call=call, input=given), "agent")
        say(ToolReturned(line="", tool=tool, call=call, text=answer, exit_code=0 if tool == "Bash" else None), "tool")

    asked = "please modernise the code of the shop"
    say(PromptSubmitted(line="", text=asked), "user")
    use("Read", {"file_path": f"{location}/go.mod"}, "module shop\n\nrequire (\n\tgithub.com/spf13/cobra v1.8.0\n)\n")
    for name in ("a", "b"):
        old, new = "v := map[string]interface{}{", "v := map[string]any{"
        use("Edit", {"file_path": f"{location}/{name}.go", "old_string": old, "new_string": new})
    use("Bash", {"command": "go test ./..."}, "ok  \tshop\t0.2s")
    use("Bash", {"command": "git commit -m 'any'"}, "[main 1a2b3c4] any\n 2 files changed")
    say(ResponseReceived(line="", text="Every empty interface is written as any now, and all tests pass."), "agent")
    say(PromptSubmitted(line="", text="This is still not working.\nLook at the log again."), "user")
    stream = events[0].stream
    episode = fact_id(stream, "episode", f"{prompt_about(asked)}:1")
    lesson = Lesson(title="Write any for the empty interface", content="`any` reads better, and gofmt -r replaces it.")
    distilled = NewEvent(
        stream=stream,
        payload=StrategyDistilled(episode=episode, strategies=(lesson,)),
        occurred_at=events[-1].occurred_at,
        dedupe_key=f"processor:test:{session}",
        actor="memctl",
        location=location,
        session_id=session,
    )
    return [*events, distilled]


CACHED = "a" * 40
REASON = "Carts are read by every page and written by few, so the database was asked the same thing ten times a second."


def statements() -> list[NewEvent]:
    """One of every event that people or processors record and that read models fold, about the same few things."""
    told: list[tuple[str, Payload]] = [
        ("knowledge/notes", MemoryNoted(text="The shop's tests need a running cache.", files=("shop/cache.go",))),
        ("knowledge/notes", MemoryNoted(text="I always prefer short answers without emoji.", kind="preference")),
        ("knowledge/verdicts", KnowledgeVerified(claim="a-claim", why="it held")),
        ("knowledge/verdicts", KnowledgeRejected(claim="another-claim", why="it did not")),
        ("knowledge/verdicts", MemoryPinned(memory="a-memory")),
        ("knowledge/verdicts", MemoryRated(memory="a-memory", value=1.0)),
        ("forget/a-1", ForgetRequested(thing="a-1", why="it is wrong")),
        ("knowledge/verdicts", ConditionResolved(condition="a-question", resolution="confirmed", resolved_to="a-1")),
        ("core/1", CoreMemoryAppended(section="human", text="Dana likes short answers.", version=1)),
        ("core/1", CoreMemoryReplaced(section="human", text="Dana likes answers.", version=2, old="short", new="")),
        (CONSOLIDATION, MemoriesMerged(keeper=Member("a-memory", "1a"), merged=(Member("a-2", "2b"),), alike=0.9)),
        (CONSOLIDATION, MemoryPruned(memory="a-3", last_at=NOON)),
        (CONSOLIDATION, MemorySuperseded(memory=Member("a-4", "4d"), by=Member("a-memory", "1a"))),
        (CONSOLIDATION, ContradictionFound(memories=(Member("a-5", "5e"), Member("a-6", "6f")))),
        (CONSOLIDATION, ConsolidationUndone(change=UUID(int=2), memories=("a-5", "a-6"))),
        (CONSOLIDATION, ReflectionMade(topic="file:a.go", title="It fails", text="It fails.", memories=("a-2",))),
        (CONSOLIDATION, FileObserved(path="/home/dana/shop/part0/cart.go", blob="1a2b")),
        ("session/claude-code/recalled", MemoryRecalled(hook="SessionStart", memories=(RecalledMemory("a-memory"),))),
        ("project/shop", ProjectIdentified(location="/home/dana/shop/part0", root="/home/dana/shop")),
        ("project/shop", ProjectMerged(into="host/shop", merged="/home/dana/shop/part1")),
        ("project/shop", ProjectSplit(part="/home/dana/shop/part1")),
        ("history/shop", CommitRecorded(line=CACHED, text=f"Cache the carts\n\n{REASON}", files=("shop/cache.go",))),
        ("history/shop", CommitRecorded(line="b" * 40, text=f"Drop it\n\nThis reverts commit {CACHED}.\n\n{REASON}")),
        ("history/shop", TagRecorded(line=f"tag v1 {CACHED}", parent=CACHED, name="v1")),
    ]  # fmt: skip
    return [
        NewEvent(
            stream=stream,
            payload=payload,
            occurred_at=Micros(NOON + number),
            dedupe_key=f"command:test:{number}",
            actor="user",
            location="/home/dana/shop/part0",
        )
        for number, (stream, payload) in enumerate(told)
    ]


def everything() -> list[NewEvent]:
    """Sessions and statements that leave something in every read model."""
    sessions = [event for number in range(6) for event in example(number, day=number + 2)]
    return [*sessions, *workshop(0), *workshop(1), *statements()]


@contextmanager
def real_sessions() -> Iterator[Path]:
    """The folder of unpacked real sessions; the test is skipped where there are none."""
    if not published.SESSIONS.exists():
        pytest.skip(published.lacking(published.SESSIONS))
    with published.sessions() as folder:
        yield folder


def events_of(folder: Path) -> Iterator[list[NewEvent]]:
    """The prepared events of each transcript in a folder."""
    for path in discover([folder]):
        format = format_of(path)
        assert format is not None
        yield [prepare(event) for parsed in parse_file(path, format) for event in parsed.events]


def filled(url: str, connection: Connection, shards: int = 4) -> None:
    """Make the first generations and fold a history with something for every read model into them."""
    generations.ensure_live(connection, shards)
    append(connection, 1, everything())
    drained(url)


def drained(url: str) -> None:
    """Fold all that is in the log."""
    drainer = Drainer(url)
    catch_up(drainer)
    drainer.close()


def digests(connection: Connection, of: Live | None = None) -> dict[str, tuple[int, str]]:
    """Rows and digest of every read model, and of the facts; of the live generations, or of others."""
    of = of or generations.live(connection)
    found = {p.name: readmodels.digest(connection, p, of.stage1 if p.stage == 1 else of.stage2) for p in projections()}
    found["facts"] = readmodels.digest_of(connection, facts.rows_query(of.stage1))
    return {name: (digest.rows, digest.hex) for name, digest in found.items()}


def rebuilt(server: str, template: str, events: list[NewEvent]) -> dict[str, tuple[int, str]]:
    """The digests of a log that never held anything but these."""
    with servers.fresh_database(server, template=template) as url, connect(url) as other:
        generations.ensure_live(other, 4)
        append(other, 1, events)
        drained(url)
        return digests(other)
