"""Lines: torn, long, odd, unfinished; and no input at all that breaks a parser."""

from __future__ import annotations

import errno
import io
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transcript_files import parse_file

from memctl.api.write.ingest import RESTS_S, Account, count
from memctl.infra.redaction import prepare
from memctl.infra.transcripts.claude import Claude
from memctl.infra.transcripts.codex import Codex
from memctl.infra.transcripts.copilot import Copilot
from memctl.infra.transcripts.files import (
    AMONG_SOURCES,
    BESIDE_SESSIONS,
    EXAMPLE,
    default_sources,
    discover,
    kept_by_a_client,
)
from memctl.infra.transcripts.formats import Format
from memctl.infra.transcripts.gemini import GeminiDocument
from memctl.infra.transcripts.reading import (
    START,
    Checkpoint,
    Parsed,
    Trail,
    Transcript,
    parse_document,
    parse_lines,
    raw_lines,
)
from memctl.infra.transcripts.sniff import OTHERWISE_WRITTEN, damaged_head, sniff

FORMATS = (Claude, Codex, Copilot)


def prompt(text: str, uuid: str = "u-1") -> bytes:
    return json.dumps({"type": "user", "uuid": uuid, "sessionId": "s", "message": {"content": text}}).encode()


def parse(data: bytes, format: type[Format] = Claude, limit: int = 1 << 20) -> list[Parsed]:
    return list(parse_lines(raw_lines(io.BytesIO(data), limit=limit), format()))


def texts(parsed: list[Parsed]) -> list[str]:
    return [getattr(event.payload, "text", "") for line in parsed for event in line.events]


def test_two_objects_run_together_are_both_read() -> None:
    (line,) = parse(prompt("a") + prompt("b", "u-2") + b"\n")
    assert (line.outcome, line.why) == ("events", "")
    assert texts([line]) == ["a", "b"]


def test_a_whole_object_behind_a_torn_one_is_read_and_the_rest_said_to_be_bad() -> None:
    (line,) = parse(prompt("torn")[:-20] + prompt("whole", "u-2") + b"\n")
    assert line.outcome == "events"
    assert texts([line]) == ["whole"]
    assert line.why.startswith("not JSON")


def test_an_object_inside_a_torn_line_is_not_taken_for_the_line() -> None:
    (line,) = parse(b'{"type":"user","message":{"content":[{"type":"text","text":"inner"}]},"uui\n')
    assert (line.outcome, line.events) == ("bad", ())


def test_a_line_breaks_at_newlines_only() -> None:
    (line,) = parse(prompt("a\u2028b\u0085c").decode().encode().replace(b"\\u2028", "\u2028".encode()) + b"\n")
    assert texts([line]) == ["a\u2028b\u0085c"]


def test_an_unfinished_last_line_waits() -> None:
    first, second = parse(prompt("a") + b"\n" + prompt("b", "u-2")[:-1])
    assert (first.outcome, second.outcome, second.why) == ("events", "incomplete", "")
    (alone,) = parse(prompt("a"))  # whole but for its newline: taken, and read again
    assert (alone.outcome, alone.whole) == ("events", False)


def test_an_overlong_line_is_passed_over_and_the_next_one_read() -> None:
    long, next_one = parse(prompt("x" * 5000) + b"\n" + prompt("b", "u-2") + b"\n", limit=1000)
    assert long.outcome == "bad"
    assert "longer than" in long.why
    assert texts([next_one]) == ["b"]
    assert next_one.number == 2


def test_blank_lines_are_counted_as_such() -> None:
    assert [line.outcome for line in parse(b"\n \r\n" + prompt("a") + b"\r\n")] == ["blank", "blank", "events"]


@pytest.mark.parametrize(
    "data",
    [
        b'{"type":"user","uuid":"u","sessionId":"s","message":{"content":"lone \\ud800 surrogate"}}',
        b'{"type":"user","uuid":"u","sessionId":"s","message":{"content":"not utf-8 \xff\xfe"}}',
        b'{"type":"user","uuid":"u","sessionId":"s","message":{"content":"nul \\u0000"}}',
    ],
)
def test_odd_characters_are_cleaned_and_the_line_kept(data: bytes) -> None:
    (line,) = parse(data + b"\n")
    (event,) = line.events
    stored = getattr(prepare(event).payload, "text", "")
    assert "\0" not in stored
    assert stored.encode()


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000 + b"]" * 100_000,
        b'{"type":"user","sessionId":"s","x":' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"type":"user","sessionId":"s","x":' + b"9" * 10_000 + b"}",
        b"17",
        b'"text"',
        b"null",
        b"not json",
        b"\0\0\0",
        b'{"' * 1000,
    ],
)
def test_what_is_no_line_is_bad_and_says_why(data: bytes) -> None:
    (line,) = parse(data + b"\n")
    assert line.outcome == "bad"
    assert line.why


def test_a_file_that_grows_faster_than_it_is_read_holds_nobody(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes((prompt("x") + b"\n") * 3)
    read = 0
    with Transcript(path) as transcript, path.open("ab", buffering=0) as writer:
        for parsed in transcript.parse(Claude()):
            writer.write((prompt("x") + b"\n") * 2)
            read += parsed.whole
            assert read <= 3
        last = transcript.checkpoint(parsed)
    with Transcript(path) as transcript:
        assert transcript.resume(last, Claude()) == last
        assert sum(parsed.whole for parsed in transcript.parse(Claude(), last)) == 6


def test_a_hole_of_a_terabyte_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(prompt("x") + b"\n")
    os.truncate(path, 1 << 40)
    began = time.process_time()
    with Transcript(path) as transcript:
        first, hole = transcript.parse(Claude())
        assert transcript.checkpoint(first).lines == 1
    assert (first.outcome, hole.outcome, hole.whole) == ("events", "incomplete", False)
    assert time.process_time() - began < 20


def test_a_growing_file_gives_each_event_as_the_whole_does(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    data = b"".join(prompt(f"text {n}", f"u-{n}") + b"\n" for n in range(5))
    path.write_bytes(data)
    whole = [event for line in parse_file(path, Claude()) for event in line.events]
    found, last = [], START
    for end in range(0, len(data) + 1, 7):
        path.write_bytes(data[:end])
        with Transcript(path) as transcript:
            start = transcript.resume(last, Claude())
            assert start == last
            for line in transcript.parse(Claude(), start):
                found += line.events
                if line.whole:
                    last = transcript.checkpoint(line)
    path.write_bytes(data)
    with Transcript(path) as transcript:
        found += [
            event for line in transcript.parse(Claude(), transcript.resume(last, Claude())) for event in line.events
        ]
    assert list(dict.fromkeys(event.dedupe_key for event in found)) == [event.dedupe_key for event in whole]
    assert {event.dedupe_key: event for event in found} == {event.dedupe_key: event for event in whole}


def test_a_file_that_was_rewritten_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(prompt("a") + b"\n")
    with Transcript(path) as transcript:
        (line,) = transcript.parse(Claude())
        last = transcript.checkpoint(line)
        assert transcript.resume(last, Claude()) == last
    path.write_bytes(prompt("b") + b"\n" + prompt("c", "u-2") + b"\n")
    with Transcript(path) as transcript:
        assert transcript.resume(last, Claude()) == START
    path.write_bytes(b"")
    with Transcript(path) as transcript:
        assert transcript.resume(last, Claude()) == START


def test_a_checkpoint_is_of_the_bytes_read_whatever_takes_the_place_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    old = b"".join(prompt(f"text {n}" * 500, f"u-{n}") + b"\n" for n in range(5))
    path.write_bytes(old)
    with Transcript(path) as transcript:
        lines = transcript.parse(Claude())
        first, _ = next(lines), next(lines)
        other = tmp_path / "other"
        other.write_bytes(prompt("another first line") + b"\n" + old)
        other.rename(path)
        last = transcript.checkpoint(first)  # the line before the last one read
    with Transcript(path) as transcript:
        assert transcript.resume(last, Claude()) == START
    path.write_bytes(old)
    with Transcript(path) as transcript:
        assert transcript.resume(last, Claude()) == last


@pytest.mark.parametrize("size", [1, 4000, 4096, 5000, 9000, 30_000])
def test_the_digest_of_what_was_read_is_that_of_the_file(size: int, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    data = b"".join(f"{n:05} {'x' * n * size}\n".encode() for n in range(6)) + b"not ended"
    path.write_bytes(data)
    ends = [at + 1 for at, byte in enumerate(data) if byte == ord("\n")]
    with path.open("rb") as file:
        trail = Trail()
        for line, end in zip(raw_lines(file, limit=2000, trail=trail), ends, strict=False):
            with Transcript(path) as transcript:
                at = Checkpoint(end, line.number, trail.digest(end))
                assert transcript.resume(at, Claude()) == at
        last = trail.digest(ends[-1])  # what follows has no newline yet
    assert last == trail.digest(ends[-1])


def test_transcripts_are_found_by_content_and_links_end(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "one.jsonl").write_bytes(prompt("a") + b"\n")
    (tmp_path / "a" / "b" / "two.jsonl").write_bytes(
        b'{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"c"}}\n'
    )
    (tmp_path / "a" / "other.jsonl").write_bytes(b'{"some":"data"}\n')
    (tmp_path / "a" / "odd.jsonl").write_bytes(b"\0\1\2")
    (tmp_path / "a" / "notes.txt").write_bytes(prompt("a") + b"\n")
    (tmp_path / "a" / "loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "a" / "again.jsonl").symlink_to(tmp_path / "a" / "one.jsonl")
    (tmp_path / "a" / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    found = list(discover([tmp_path, tmp_path / "a"]))
    assert sorted(path.resolve().name for path in found) == ["one.jsonl", "two.jsonl"]
    assert list(discover([tmp_path / "a" / "notes.txt"])) == [tmp_path / "a" / "notes.txt"]
    assert sniff(tmp_path / "a" / "b" / "two.jsonl") is Codex
    with pytest.raises(FileNotFoundError):
        list(discover([tmp_path / "nowhere"]))


DAMAGE = {
    "zeros": b"\0" * 70_000,
    "zeros on a line": b"\0" * 5_000 + b"\n",
    "torn lines": b'"text":"torn"}]}}\n' * 300,
    "lines that break off": b'{"type":"user","message":{\n' * 300,
    "blank lines": b"\n \r\n" * 3_000,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_file_with_a_damaged_beginning_is_read_from_its_first_good_lines_on(tmp_path: Path, damage: str) -> None:
    (tmp_path / "one.jsonl").write_bytes(DAMAGE[damage] + prompt("a") + b"\n" + prompt("b") + b"\n")
    assert list(discover([tmp_path])) == [tmp_path / "one.jsonl"]
    assert texts(list(parse_file(tmp_path / "one.jsonl", Claude()))) == ["a", "b"]


@pytest.mark.parametrize("half", [rb"\ud83d", rb"\udc4d", b"\xed\xa0\xbd", b"\xff"])
def test_a_session_in_whose_every_line_a_character_was_cut_is_read(tmp_path: Path, half: bytes) -> None:
    (tmp_path / "one.jsonl").write_bytes(b"\n".join(prompt(text).replace(b'"}', half + b'"}') for text in "ab") + b"\n")
    assert sniff(tmp_path / "one.jsonl") is Claude
    assert [text[0] for text in texts(list(parse_file(tmp_path / "one.jsonl", Claude())))] == ["a", "b"]


@pytest.mark.parametrize("damage", ["zeros", "torn lines"])
def test_a_damaged_document_is_read_or_named(tmp_path: Path, damage: str) -> None:
    chat = b'{"sessionId":"s","projectHash":"p","messages":[{"id":"1","type":"user","content":"a"}]}'
    (tmp_path / "chat.json").write_bytes(DAMAGE[damage] + chat)
    assert list(discover([tmp_path])) == [tmp_path / "chat.json"]
    assert (sniff(tmp_path / "chat.json") is None) == (damage == "torn lines")
    assert bool(damaged_head(tmp_path / "chat.json")) == (damage == "torn lines")


def test_a_file_whose_beginning_is_damaged_beyond_what_is_looked_at_is_named(tmp_path: Path) -> None:
    for name, content in {
        "far": b'"sessionId":"s"}\n' * 400_000 + prompt("a") + b"\n",
        "lost": b"\0" * 8_000,
        "one": b'"sessionId":"s"}\n' * 300 + prompt("a") + b"\n",
    }.items():
        (tmp_path / f"{name}.jsonl").write_bytes(content)
    assert [path.stem for path in discover([tmp_path])] == ["far", "lost", "one"]
    assert all(damaged_head(path) and sniff(path) is None for path in tmp_path.iterdir())
    assert list(discover([tmp_path], agent="codex")) == []


@pytest.mark.parametrize("encoding", ["utf-16-be", "utf-16-le", "cr"])
def test_a_session_in_another_encoding_or_with_other_ends_of_lines_is_named(tmp_path: Path, encoding: str) -> None:
    text = b"".join(prompt(each) + b"\n" for each in ("a", "b", "c"))
    written = text.replace(b"\n", b"\r") if encoding == "cr" else text.decode().encode(encoding)
    (tmp_path / "one.jsonl").write_bytes(written)
    assert list(discover([tmp_path])) == [tmp_path / "one.jsonl"]
    assert damaged_head(tmp_path / "one.jsonl") == OTHERWISE_WRITTEN


@pytest.mark.parametrize("name", ["s.jsonl.gz", "S.JSONL.ZST", "s.ndjson.xz", "s.jsonl.bz2"])
def test_packed_sessions_in_a_folder_are_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\x1f\x8b")
    (tmp_path / "logs.gz").write_bytes(b"\x1f\x8b")
    refused: dict[Path, OSError] = {}
    assert list(discover([tmp_path], refused=refused.__setitem__)) == []
    assert {path.name: why.strerror for path, why in refused.items()} == {name: "packed: unpack it"}


def test_what_is_plainly_no_transcript_is_not_named(tmp_path: Path) -> None:
    for name, content in {
        "picture.json": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        "package.json": b'{\n  "sessionId": "a"\n}\n',
        "index.json": b'{"version":1,"entries":[{"sessionId":"a"}]}',
        "logs.json": b'[\n {"sessionId": "a", "messageId": 0}\n]',
        "data.jsonl": b'{"some":"data"}\n' * 300,
        "being-written.jsonl": b'{"type":"user","sessionId":"a","mess',
        "empty.jsonl": b"",
        "notes.md": b"# Sessions\n\nA line of one:\n\n" + b"text\n" * 60 + prompt("a") + b"\n",
        "code.py": b'line = {"sessionId": "a"}\n',
    }.items():
        (tmp_path / name).write_bytes(content)
    assert list(discover([tmp_path])) == []


def test_what_cannot_be_read_is_told_and_the_rest_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "one.jsonl").write_bytes(prompt(name) + b"\n")
    listed, opened = Path.iterdir, Path.open

    def denied(path: Path, *given: Any, **more: Any) -> Any:
        if path in (tmp_path / "a", tmp_path / "b" / "one.jsonl"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return (opened if path.is_file() else listed)(path, *given, **more)

    monkeypatch.setattr(Path, "iterdir", denied)
    monkeypatch.setattr(Path, "open", denied)
    refused: dict[Path, OSError] = {}
    assert list(discover([tmp_path], refused=refused.__setitem__)) == [tmp_path / "c" / "one.jsonl"]
    assert list(refused) == [tmp_path / "a", tmp_path / "b" / "one.jsonl"]


def test_default_sources_are_the_folders_that_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".claude" / "projects").mkdir(parents=True)
    (tmp_path / ".copilot" / "session-state").mkdir(parents=True)
    (tmp_path / "codex" / "sessions").mkdir(parents=True)
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    assert default_sources(tmp_path) == [
        tmp_path / ".claude" / "projects",
        tmp_path / "codex" / "sessions",
        tmp_path / ".copilot" / "session-state",
    ]


HEADS: dict[type[Format], bytes] = {
    Claude: b"",
    Codex: b'{"type":"session_meta","payload":{"id":"c"}}\n',
    Copilot: b'{"type":"session.start","data":{"sessionId":"p"},"id":"e"}\n',
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
KNOWN = """
    type uuid sessionId message content text tool_use tool_result user assistant progress data attachment
    system subtype usage id name input toolUseResult structuredPatch lines is_error timestamp cwd payload
    response_item event_msg function_call function_call_output arguments output message role call_id action
    changes info user.message assistant.message tool.execution_complete toolRequests result error context
    agent_progress session_meta turn_context compacted token_count patch_apply_end queue-operation enqueue
    operation
"""
WORDS = st.sampled_from(KNOWN.split())
LIKELY = st.recursive(
    WORDS | JSON,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=6),
    max_leaves=20,
)


def accounted(data: bytes, format: type[Format]) -> None:
    lines = parse(data, format)
    assert len(lines) == data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    for line in lines:
        assert bool(line.events) == (line.outcome == "events")
        assert bool(line.kind) == (line.outcome == "ignored")
        for event in line.events:
            prepare(event)


@pytest.mark.parametrize("format", FORMATS)
@settings(deadline=None)
@given(data=st.binary(max_size=300))
def test_no_bytes_break_a_parser(format: type[Format], data: bytes) -> None:
    accounted(HEADS[format] + data, format)


@pytest.mark.parametrize("format", FORMATS)
@settings(deadline=None)
@given(value=LIKELY)
def test_no_object_breaks_a_parser(format: type[Format], value: Any) -> None:
    record = value if isinstance(value, dict) else {"type": "user", "sessionId": "s", "message": value}
    data = HEADS[format] + json.dumps({"sessionId": "s", "payload": record, "data": record, **record}).encode() + b"\n"
    accounted(data, format)


def test_a_document_that_breaks_off_is_named_once_nobody_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    path.write_bytes(b'{"sessionId": "s", "messages": [{"id": "1"')
    (parsed,) = parse_document(path.read_bytes(), GeminiDocument(path))
    fresh, rested = Account(), Account()
    count(fresh, path, parsed)
    os.utime(path, (path.stat().st_mtime - 2 * RESTS_S,) * 2)
    count(rested, path, parsed)
    assert (fresh.incomplete, fresh.bad) == (1, [])
    assert rested.incomplete == 1
    assert ["breaks off" in each.why for each in rested.bad] == [True]


SESSION = "0f8fad5b-d9cb-469f-a165-70867728950e"


@pytest.mark.parametrize(
    ("path", "read"),
    [
        (f".claude/projects/-w-shop/{SESSION}.jsonl", True),
        (".claude/projects/-w-shop/agent-1a2b.jsonl", True),
        (f".claude/projects/-w-shop/{SESSION}/subagents/agent-1a2b.jsonl", True),
        (f".claude/projects/-w-shop/{SESSION}/subagents/workflows/w1/agent-1a2b.jsonl", True),
        (f".claude/projects/-w-shop/{SESSION}/tool-results/agent-1.jsonl", False),
        (f".claude/projects/-w-shop/{SESSION}/subagents/notes.jsonl", False),
        (".claude/projects/-w-shop/memory/notes.jsonl", False),
        (".claude/projects/-w-shop/memory/subagents/agent-1.jsonl", False),
        (".claude/projects/notes.jsonl", False),
        (f".codex/sessions/2026/03/02/{SESSION}.jsonl", False),
        (".copilot/session-state/abc/files/events.jsonl", False),
        (".gemini/tmp/abc/plans/p.jsonl", False),
        (".gemini/tmp/abc/chats/session-1.jsonl", False),  # in Claude's format
    ],
)
def test_of_what_lies_where_clients_keep_sessions_only_these_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, read: bool
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (file := tmp_path / path).parent.mkdir(parents=True)
    file.write_bytes(EXAMPLE.read_bytes())
    refused: dict[Path, OSError] = {}
    for sources in (default_sources(tmp_path), [tmp_path], [file.parent]):
        assert list(discover(sources, refused=refused.__setitem__)) == ([file] if read else [])
    assert [why.strerror for why in refused.values()] == ([] if read else [BESIDE_SESSIONS])
    if not path.startswith(".gemini/tmp/abc/chats"):
        assert kept_by_a_client(file) is read


@pytest.mark.parametrize("path", ["rollout-2026.jsonl", "2026/03/02/rollout-2026-03-02.jsonl"])
def test_rollouts_are_known_by_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    (file := tmp_path / "sessions" / path).parent.mkdir(parents=True)
    file.write_text('{"type": "session_meta", "payload": {"id": "s"}}\n')
    assert list(discover([tmp_path / "sessions"])) == [file]
    assert kept_by_a_client(file)


def test_among_projects_files_only_the_histories_of_projects_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    aider = "\n# aider chat started at 2026-03-02 12:00:00\n\n#### hello\n\nyes\n"
    spec = "<!-- Generated by SpecStory, Markdown v2.1.0 -->\n"
    for path, text in {
        "src/shop/.git/HEAD": "ref: refs/heads/main\n",
        "src/shop/.aider.chat.history.md": aider,
        "src/shop/.specstory/history/one.md": spec,
        "src/shop/.specstory/history/two.md": EXAMPLE.read_text(),
        "src/shop/one.jsonl": EXAMPLE.read_text(),
        "src/shop/parts/evil/.aider.chat.history.md": aider,
        "src/shop/node_modules/evil/one.jsonl": EXAMPLE.read_text(),
        "src/shop/node_modules/evil/.git/HEAD": "ref: refs/heads/main\n",
        "src/shop/node_modules/evil/.specstory/history/one.md": spec,
        "src/unpacked/one.jsonl": EXAMPLE.read_text(),
        "src/unpacked/.specstory/history/one.md": spec,
        "sessions/shop/one.jsonl": EXAMPLE.read_text(),
        "plain/.aider.chat.history.md": aider,
        "plain/node_modules/evil/one.jsonl": EXAMPLE.read_text(),
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    found: dict[str, set[str]] = {}
    refused: dict[Path, OSError] = {}
    for named in ("src", "src/shop", "src/shop/parts/evil", "sessions", "plain"):
        paths = discover([tmp_path / named], refused=refused.__setitem__)
        found[named] = {str(each.relative_to(tmp_path / named)) for each in paths}
    histories = {".aider.chat.history.md", ".specstory/history/one.md"}
    assert found == {
        "src": {f"shop/{each}" for each in histories},
        "src/shop": histories,
        "src/shop/parts/evil": {".aider.chat.history.md"},
        "sessions": {"shop/one.jsonl"},
        "plain": {".aider.chat.history.md"},
    }
    assert {why.strerror for why in refused.values()} == {AMONG_SOURCES}
    assert list(discover([tmp_path / "src/shop/one.jsonl"])) == [tmp_path / "src/shop/one.jsonl"]
