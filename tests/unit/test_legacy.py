"""Legacy stores: what their rows claim, in whatever form they come; and that nothing is written to them."""

from __future__ import annotations

import json
import sqlite3
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memctl.api.write import importing
from memctl.api.write.importing import account_of, stores
from memctl.api.write.ingest import MOST_BAD, MOST_KINDS, Account
from memctl.domain.events.event import Event, Micros, NewEvent, Position
from memctl.domain.events.observations import NoticeReceived, PromptSubmitted, ResponseReceived, event_id_of
from memctl.domain.language.notes import MemoryNoted, claim_of
from memctl.infra.legacy import rows
from memctl.infra.legacy.markdown import notes_in
from memctl.infra.legacy.meaning import TABLES, events_of, table_of
from memctl.infra.legacy.rows import NotALegacyStore, rows_of
from memctl.infra.redaction import prepare_all

BOT = {
    "id": 7, "platform": "moltbook", "bot_name": "EthicsBot", "interaction_count": 42,
    "topics": '["AI ethics", "DeFi"]',
    "sentiment": "positive", "first_seen_at": "2025-01-02 03:04:05", "last_interaction_at": "2025-02-02 03:04:05",
}  # fmt: skip
INFO = {
    "id": 3, "content": "The staging server restarts every Sunday at four.", "category": "ops", "embedding": "AAAA",
    "created_at": "2025-01-05T00:00:00Z",
}  # fmt: skip
NODE = {
    "id": 9, "content": "UserA prefers short technical answers.", "memory_type": "preference", "confidence": 0.8,
    "importance": 0.6, "created_at": "2025-03-01 00:00:00",
}  # fmt: skip
SEEN = [
    {"id": "e-1", "event_type": "user_prompt", "session_id": "sess_abc", "timestamp": "2025-04-01T10:00:00Z",
     "content": "How do I add rate limiting?", "metadata": '{"cwd": "/w/api"}', "dedupe_key": "k1"},
    {"id": "e-2", "eventType": "agent_response", "sessionId": "sess_abc", "timestamp": "2025-04-01T10:00:09Z",
     "content": "With express-rate-limit."},
    {"id": "e-3", "event_type": "session_summary", "session_id": "sess_abc", "timestamp": "2025-04-01T11:00:00Z",
     "content": "Rate limiting was added."},
]  # fmt: skip
INSIGHT = {
    "id": "i-1",
    "insight_type": "preference",
    "content": "Prefers middleware-based solutions.",
    "confidence": 0.9,
}


def made(table: str, row: dict[str, Any]) -> list[NewEvent]:
    return events_of(table, row, 1)[0]


def recorded(event: NewEvent) -> Event:
    return Event(
        position=Position(1),
        event_id=event_id_of(1, event.dedupe_key),
        space_id=1,
        type=event.type,
        recorded_at=Micros(1),
        **{name: getattr(event, name) for name in SHARED},
    )


SHARED = ("stream", "payload", "occurred_at", "dedupe_key", "actor", "location", "session_id")


def test_a_bot_somebody_met_is_noted_with_its_figures_and_nothing_more() -> None:
    (event,) = made("bot_memory", BOT)
    assert isinstance(event.payload, MemoryNoted)
    assert event.payload.text == (
        "EthicsBot is an agent of moltbook. interests: AI ethics, DeFi. 42 interactions; sentiment: positive"
    )
    assert (event.payload.kind, event.payload.origin, event.actor) == ("profile", "bot_memory", "tool")
    assert claim_of(recorded(event), event.payload).said_by == "import"


@pytest.mark.parametrize(("table", "row"), [("collected_info", INFO), ("knowledge_nodes", NODE), ("insights", INSIGHT)])
def test_what_a_store_claims_is_a_note_and_counts_less_than_the_users_word(table: str, row: dict[str, Any]) -> None:
    (event,) = made(table, row)
    assert isinstance(event.payload, MemoryNoted)
    assert event.payload.origin == ("code-memory" if table == "insights" else table)
    assert event.payload.text == row["content"]
    assert claim_of(recorded(event), event.payload).said_by == "import"


def test_what_code_memory_saw_is_a_session() -> None:
    prompt, answer, summary = (made("events", row)[0] for row in SEEN)
    assert isinstance(prompt.payload, PromptSubmitted)
    assert isinstance(answer.payload, ResponseReceived)
    assert isinstance(summary.payload, NoticeReceived)
    assert {event.stream for event in (prompt, answer, summary)} == {"session/code-memory/sess_abc"}
    assert (prompt.location, prompt.actor, prompt.occurred_at) == ("/w/api", "user", 1743501600000000)


def test_a_row_keeps_its_key_until_it_changes() -> None:
    (before,), (again,) = made("bot_memory", BOT), made("bot_memory", dict(reversed(BOT.items())))
    assert before.dedupe_key == again.dedupe_key
    (changed,) = made("bot_memory", BOT | {"last_interaction_at": "2025-03-03 00:00:00"})
    assert changed.dedupe_key != before.dedupe_key
    assert "EthicsBot" not in before.dedupe_key


def test_a_text_that_is_too_long_or_too_short_is_told() -> None:
    (event,), _, why = events_of("collected_info", INFO | {"content": "long " * 1000}, 1)
    assert len(getattr(event.payload, "text", "")) == 2000
    assert why.startswith("cut at 2,000 of 4,999")
    assert events_of("collected_info", INFO | {"content": "ok"}, 1) == ([], "collected_info:too_short", "")


def database(path: Path) -> Path:
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE bot_memory (id INTEGER, platform TEXT, bot_name TEXT, interaction_count INTEGER)")
        made.execute("INSERT INTO bot_memory VALUES (1, 'x', 'A bot', 3)")
        made.execute("CREATE TABLE collected_info (id INTEGER, content TEXT, category TEXT, embedding BLOB)")
        made.execute("INSERT INTO collected_info VALUES (1, 'Something worth knowing', 'c', x'00ff')")
        made.execute("CREATE TABLE entity_profiles (id INTEGER, platform TEXT, entity_name TEXT, entity_type TEXT)")
        made.execute("INSERT INTO entity_profiles VALUES (5, 'x', 'UserA', 'user')")
        made.execute("CREATE TABLE sentiment_history (id INTEGER, entity_profile_id INTEGER, sentiment_score REAL)")
        made.execute("INSERT INTO sentiment_history VALUES (1, 5, 0.5), (2, 99, 0.5)")
        made.execute("CREATE TABLE consolidation_log (id INTEGER, operation TEXT)")
        made.execute("INSERT INTO consolidation_log VALUES (1, 'migrate')")
        made.execute("CREATE TABLE passwords (secret TEXT)")
    made.close()
    return path


def test_a_database_is_read_by_the_tables_that_are_known_and_never_written(tmp_path: Path) -> None:
    path = database(tmp_path / "bot.db")
    before, beside = path.read_bytes(), sorted(tmp_path.iterdir())
    account, examples = account_of(stores([path]))
    assert account.types == {"memory.noted": 3}
    assert account.ignored == {"consolidation_log": 1, "sentiment_history": 2}
    assert account.bad == []
    assert account.lines == account.with_events + sum(account.ignored.values()) + len(account.bad)
    assert any("Something worth knowing" in example for example in examples)
    assert (path.read_bytes(), sorted(tmp_path.iterdir())) == (before, beside)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("export.json", json.dumps({"events": SEEN, "insights": [INSIGHT], "version": 1})),
        ("export.json", json.dumps([*SEEN, INSIGHT], indent=2)),
        ("export.jsonl", "".join(json.dumps(row) + "\n\n" for row in [*SEEN, INSIGHT])),
    ],
)
def test_code_memorys_export_is_read_in_each_of_its_forms(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    account, _ = account_of(stores([tmp_path]))
    assert account.types == {
        "prompt.submitted": 1, "response.received": 1, "notice.received": 1, "memory.noted": 1,
    }  # fmt: skip
    assert not account.bad


def test_rows_of_a_table_are_known_by_the_files_name_or_by_their_fields(tmp_path: Path) -> None:
    (tmp_path / "good_examples.json").write_text(json.dumps([{"content": "An answer that was liked"}]))
    assert [row.table for row in rows_of(tmp_path / "good_examples.json")] == ["good_examples"]
    assert [table_of(row, "x") for row in (BOT, INFO, NODE, INSIGHT)] == [
        "bot_memory", "collected_info", "knowledge_nodes", "insights",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("a.db", b"\0" * 8 + b"DUCK" + b"\0" * 20, "DuckDB"),
        ("a.db", b"SQLite format 3\0garbage", "SQLite says"),
        ("a.json", b'{"name": "package"}', "JSON without rows"),
    ],
)
def test_what_is_no_store_is_refused_with_its_reason(tmp_path: Path, name: str, data: bytes, why: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(NotALegacyStore, match=why):
        account_of(stores([tmp_path / name]))
    with pytest.raises(NotALegacyStore, match="no such file"):
        stores([tmp_path / "nowhere"])


def test_odd_lines_are_bad_and_strange_rows_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('not json\n[1]\n{"some": "thing"}\n' + json.dumps(SEEN[0]) + "\n")
    account, _ = account_of([path])
    assert [bad.line for bad in account.bad] == [1, 2]
    assert (account.ignored, account.with_events) == ({"unknown row": 1}, 1)


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.lists(st.text(max_size=5))
FIELDS = st.sampled_from(sorted({*BOT, *INFO, *NODE, *SEEN[0], *INSIGHT, "sentiment_score", "trust_level", "title"}))


@settings(deadline=None)
@given(table=st.sampled_from(sorted(TABLES)), row=st.dictionaries(FIELDS, VALUES))
def test_no_row_breaks_the_import(table: str, row: dict[str, Any]) -> None:
    events, left_out, why = events_of(table, row, 1)
    assert bool(events) + bool(left_out) + bool(why and not events) == 1
    prepare_all(events)
    assert events == events_of(table, row, 1)[0]


def test_a_database_computes_nothing_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "bomb.db"
    with sqlite3.connect(path) as made:
        made.execute(
            "CREATE TABLE bot_memory (id INTEGER, content TEXT, big TEXT AS (hex(zeroblob(400000000))), "
            "stored TEXT AS (upper(content)) STORED)"
        )
        made.execute("INSERT INTO bot_memory (id, content) VALUES (1, 'the parser must not use eval')")
        made.execute("CREATE VIEW collected_info AS SELECT hex(zeroblob(400000000)) AS content")
    made.close()
    tracemalloc.start()
    [row] = rows_of(path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert row.fields == {"id": 1, "content": "the parser must not use eval"}
    assert most < 10_000_000


def test_rows_of_more_than_the_file_end_the_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that many others lead to is read once for each: rows are counted against what the file can hold."""
    path = tmp_path / "circle.db"
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE bot_memory (id INTEGER PRIMARY KEY, content TEXT)")
        made.executemany("INSERT INTO bot_memory VALUES (?, ?)", ((n, "x" * 100) for n in range(200)))
    made.close()
    assert len(list(rows_of(path))) == 200
    monkeypatch.setattr(rows, "_OVERHEAD", 10_000 - 2 * path.stat().st_size)
    with pytest.raises(NotALegacyStore, match="more than the file has bytes"):
        list(rows_of(path))


def test_an_account_holds_so_much_of_a_store_of_millions_of_bad_rows_and_counts_them_all(tmp_path: Path) -> None:
    store = tmp_path / "store.jsonl"
    kinds = b"".join(
        b'{"event_type": "agent_response", "session_id": "s", "content": "", "k": %d}\n' % n for n in range(9)
    )
    store.write_bytes(b"1\n" * (MOST_BAD + 500) + kinds)
    account, _ = account_of([store])
    assert len(account.bad) == MOST_BAD
    assert account.bad_lines == account.as_json()["bad_lines"] == MOST_BAD + 500
    assert account.lines == account.with_events + sum(account.ignored.values()) + account.bad_lines


def test_a_store_of_which_most_rows_are_bad_is_read_no_further_than_so_many(tmp_path: Path) -> None:
    store = tmp_path / "store.jsonl"
    store.write_bytes(b"1\n" * 20_000_000)
    began = time.process_time()
    with pytest.raises(NotALegacyStore, match=r"10,000 of its first 10,000 rows .* take the bad ones out"):
        account_of([store])
    assert time.process_time() - began < 20, "of a whole reading it would be minutes"


def test_a_store_of_which_most_rows_are_good_is_read_to_its_end(tmp_path: Path) -> None:
    store = tmp_path / "store.jsonl"
    good = b'{"event_type": "agent_response", "session_id": "s", "content": "", "k": 1}\n'
    store.write_bytes((good + good + b"1\n") * (importing.MOST_BAD + 10))
    assert account_of([store])[0].bad_lines == importing.MOST_BAD + 10


def test_an_account_counts_kinds_beyond_its_most_together() -> None:
    account = Account()
    for number in range(2 * MOST_KINDS):
        account.ignore(f"kind{number}")
    assert len(account.ignored) == MOST_KINDS + 1
    assert sum(account.ignored.values()) == 2 * MOST_KINDS


def test_a_row_of_many_columns_takes_time_linear_in_them(tmp_path: Path) -> None:
    def seconds(columns: int) -> float:
        store = tmp_path / f"{columns}.db"
        with sqlite3.connect(store) as made:
            made.execute(f"CREATE TABLE bot_memory ({', '.join(f'column_{n}' for n in range(columns))})")
            made.executemany("INSERT INTO bot_memory (column_0) VALUES (?)", ((n,) for n in range(40_000 // columns)))
        made.close()
        began = time.process_time()
        assert len(list(rows_of(store))) == 40_000 // columns
        return time.process_time() - began

    assert seconds(2_000) < 4 * seconds(100) + 0.1


def test_directories_that_transcripts_name_cost_no_more_than_their_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each folder above one may be the project's: the whole name of each was written out with dashes."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    project = tmp_path / "projects" / "-w-shop"
    (project / "memory").mkdir(parents=True)
    (project / "memory" / "a.md").write_text("# A\n\nMoney is Decimal.\n")
    lines = "".join(json.dumps({"cwd": f"/{number}{'/a' * 450}"}) + "\n" for number in range(60))
    for number in range(6):
        (project / f"{number}.jsonl").write_text(lines)
    (project / "z.jsonl").write_text(json.dumps({"cwd": "/w/shop/src"}) + "\n")
    began = time.process_time()
    (note,) = notes_in(project / "memory")
    assert time.process_time() - began < 0.5
    assert note.fields["place"] == "/w/shop"
