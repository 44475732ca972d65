"""The published sessions, where this machine has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from histories import real_sessions
from transcript_files import format_of, parse_file

from memctl.domain.events.event import NewEvent
from memctl.infra.redaction import prepare_all
from memctl.infra.transcripts.files import discover
from memctl.infra.transcripts.reading import Parsed


@pytest.fixture(scope="module")
def sessions() -> Iterator[dict[Path, list[Parsed]]]:
    """What became of every line of every session, by file."""
    with real_sessions() as folder:
        yield {path: read(path) for path in discover([folder])}


def read(path: Path) -> list[Parsed]:
    format = format_of(path)
    assert format
    return list(parse_file(path, format))


def events_of(lines: list[Parsed]) -> list[NewEvent]:
    return [event for line in lines for event in line.events]


def test_every_session_is_found_and_every_line_accounted_for_once(sessions: dict[Path, list[Parsed]]) -> None:
    assert len(sessions) == 150
    for path, lines in sessions.items():
        data = path.read_bytes()
        assert len(lines) == data.count(b"\n") + (not data.endswith(b"\n"))
        assert [line.offset for line in lines] == [0, *(line.end for line in lines[:-1])]
        assert lines[-1].end == len(data)
        for line in lines:
            assert bool(line.events) == (line.outcome == "events")
            assert bool(line.kind) == (line.outcome == "ignored")


def test_no_line_is_bad_because_torn_ones_are_recovered(sessions: dict[Path, list[Parsed]]) -> None:
    assert not [(path.name, line.number, line.why) for path, lines in sessions.items() for line in lines if line.why]
    torn = {"86cc3044": 115, "130d7b7e": 128, "4fec7ea0": 196}
    for path, lines in sessions.items():
        for name, number in torn.items():
            if name in path.name:
                assert lines[number - 1].outcome in ("events", "ignored")


def test_a_session_under_a_second_name_gives_no_new_keys_for_equal_lines(sessions: dict[Path, list[Parsed]]) -> None:
    by_line: dict[bytes, set[tuple[str, ...]]] = {}
    files: Counter[bytes] = Counter()
    for path, lines in sessions.items():
        data = path.read_bytes()
        for line in lines:
            raw = data[line.offset : line.end].strip()
            if line.events and b'"uuid"' in raw:
                by_line.setdefault(raw, set()).add(tuple(event.dedupe_key for event in line.events))
                files[raw] += 1
    assert sum(count > 1 for count in files.values()) > 200
    assert not [keys for keys in by_line.values() if len(keys) > 1]


def test_growing_prefixes_give_the_events_of_the_whole(sessions: dict[Path, list[Parsed]], tmp_path: Path) -> None:
    formats = {}
    for path in sessions:
        formats.setdefault(type(format_of(path)), []).append(path)
    assert len(formats) == 3
    for paths in formats.values():
        path = max(paths, key=lambda path: path.stat().st_size if path.stat().st_size < 2_000_000 else 0)
        data, whole = path.read_bytes(), {event.dedupe_key: event for event in events_of(sessions[path])}
        copy = tmp_path / "renamed.jsonl"
        for part in (0.1, 0.37, 0.5, 0.93):
            copy.write_bytes(data[: int(len(data) * part)])
            for event in events_of(read(copy)):
                assert whole[event.dedupe_key] == event


def test_events_stand_in_their_session_and_know_their_time_and_place(sessions: dict[Path, list[Parsed]]) -> None:
    for path, lines in sessions.items():
        for event in events_of(lines):
            agent, session = event.stream.removeprefix("session/").split("/")
            assert session == event.session_id
            assert session in path.name
            assert event.dedupe_key.startswith(f"transcript:{agent}:{session}:")
            assert event.occurred_at or event.type == "notice.received"


def test_preparing_leaves_all_but_a_handful_of_texts_alone(sessions: dict[Path, list[Parsed]]) -> None:
    redactions: Counter[str] = Counter()
    for lines in sessions.values():
        events = events_of(lines)
        prepared = prepare_all(events)
        redactions.update(prepared.redactions)
        assert [event.dedupe_key for event in prepared.events] == [event.dedupe_key for event in events]
    assert redactions.total() <= 5, redactions
