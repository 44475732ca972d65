"""A session told by its hooks and by its transcript ends as if the transcript alone had told it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from client_sessions import CLAUDE, lines
from events import as_read
from histories import EXAMPLE, real_sessions
from hook_payloads import sent_for
from soak import FACTOR
from transcript_files import format_of, parse_file

from memctl.domain.events.event import Micros, NewEvent
from memctl.domain.events.facts import Episode, Fact, PlaceSeen
from memctl.infra.hooks.payloads import parse_hook
from memctl.infra.redaction import prepare
from memctl.infra.transcripts.claude import Claude
from memctl.infra.transcripts.files import discover
from memctl.projections.stream_state import fold_stream

ONLY_HOOKS_TELL = {
    "episodes": {"ended_by"},
    "sessions": {"started_at", "last_at", "ended_at", "end_reason", "starts", "model"},
    "working_memory": {"started_at", "updated_at", "ended_at"},
    "stats": {"sessions_opened"},
}
"""By read model. A transcript begins with the first prompt and ends without a word: when a session was opened and
closed, why it ended, that it was taken up again, and with which model before it said anything, its hooks alone tell."""

SESSIONS = 5
"""How many of the real sessions; MEMCTL_TEST_SOAK takes them all."""

Streams = dict[str, list[NewEvent]]


def told(paths: list[Path]) -> tuple[Streams, Streams]:
    """By stream, what the transcripts tell, and what the hooks tell besides."""
    by_transcript, by_hook = defaultdict[str, dict[str, NewEvent]](dict), defaultdict[str, list[NewEvent]](list)
    for path in paths:
        format = format_of(path)
        assert format is not None
        for event in (prepare(event) for parsed in parse_file(path, format) for event in parsed.events):
            by_transcript[event.stream].setdefault(event.dedupe_key, event)
    for number, sent in enumerate(sent_for(paths)):
        parsed = parse_hook(json.dumps(sent.payload).encode(), f"{number:032x}", Micros(sent.at))
        assert not parsed.why
        for event in map(prepare, parsed.events):
            by_hook[event.stream].append(event)
    return {stream: list(events.values()) for stream, events in by_transcript.items()}, dict(by_hook)


def folded(stream: str, events: list[NewEvent]) -> dict[Any, Any]:
    """Every row and every fact that stage 1 makes of a stream, without what only hooks tell."""
    _, delta = fold_stream(stream, [as_read(event, position) for position, event in enumerate(events, 1)])
    rows = {
        of: {name: getattr(row, name) for name in row.__struct_fields__ if name not in ONLY_HOOKS_TELL.get(of[0], ())}
        for of, row in delta.rows.items()
    }
    return rows | {id: compared(fact) for id, fact in delta.facts.items()}  # type: ignore[operator]


def compared(fact: Fact) -> Fact:
    if isinstance(fact, Episode):
        return msgspec.structs.replace(fact, ended_by="")
    # A session's place is first seen when it is opened.
    return msgspec.structs.replace(fact, occurred_at=Micros(0), evidence=()) if isinstance(fact, PlaceSeen) else fact


def check(paths: list[Path]) -> None:
    by_transcript, by_hook = told(paths)
    assert by_hook
    for stream, events in by_transcript.items():
        assert folded(stream, [*by_hook.get(stream, ()), *events]) == folded(stream, events), stream


@pytest.mark.parametrize("name", ["example", "claude"])
def test_hooks_and_transcript_end_as_the_transcript_alone(name: str, tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(EXAMPLE.read_bytes() if name == "example" else lines(CLAUDE))
    check([path])


@pytest.fixture(scope="module")
def real() -> Iterator[list[Path]]:
    with real_sessions() as folder:
        of_claude = [path for path in sorted(discover([folder])) if isinstance(format_of(path), Claude)]
        yield sorted(of_claude, key=lambda path: path.stat().st_size)


def test_a_day_of_real_sessions_replayed_as_hooks_changes_nothing(real: list[Path]) -> None:
    check(real if FACTOR else real[len(real) // 2 :: 12][:SESSIONS])
