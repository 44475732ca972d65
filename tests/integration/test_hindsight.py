"""Hindsight over a real store: what memory held when it was needed, by positions, recalled or not, and forgotten."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from doors import Door, door_to
from events import NOON, as_read, observed, stated
from histories import digests
from psycopg import sql

from memctl.api.erasure import scope as forget
from memctl.api.queries import hindsight as queries
from memctl.api.queries.endings import endings
from memctl.api.queries.recalls import Whether, recalls, titles
from memctl.api.reading import models
from memctl.api.reading.pages import page, table_of
from memctl.api.reading.places import Places
from memctl.domain.events.event import NewEvent
from memctl.domain.events.observations import PromptSubmitted, SessionEnded, ToolCalled, ToolFailed, ToolReturned
from memctl.domain.events.recalls import BECAUSE, SILENT, MemoryRecalled, PassedOver, RecalledMemory
from memctl.infra.log.append import append
from memctl.infra.readmodels import generations
from memctl.infra.redaction import prepare
from memctl.infra.settings import load_settings

EVERYWHERE = Places(None, "asked", None)
HOUR = 3600
USAGE = "error: unrecognized subcommand 'bun'\n\nUsage: rtk [OPTIONS] <COMMAND>"


@pytest.fixture
def door(postgres_server: str, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    data = tmp_path_factory.mktemp("data")
    with door_to(postgres_server, migrated_template, data, location="/home/dana/ledger") as door:
        generations.ensure_live(door.connection, 2)
        yield door


def session(name: str, at: int) -> list[NewEvent]:
    """A command that fails, and the form of it that works."""
    told = [
        PromptSubmitted(line=f"{name}-1", text="Run the tests of the ledger and say what fails"),
        ToolCalled(line=f"{name}-2", tool="Bash", call="a", input={"command": "rtk bun run test"}),
        ToolFailed(line=f"{name}-3", call="a", text=USAGE, exit_code=2),
        ToolCalled(line=f"{name}-4", tool="Bash", call="b", input={"command": "bun run test"}),
        ToolReturned(line=f"{name}-5", call="b", text="12 pass", exit_code=0),
    ]
    return [prepare(observed(payload, session=name, at=at + number)) for number, payload in enumerate(told)]


def held(door: Door) -> list[queries.Record]:
    return queries.records(door.known(), EVERYWHERE)


def test_a_known_command_is_found_with_where_it_was_held_and_what_it_cost(door: Door) -> None:
    append(door.connection, 1, [*session("one", 0), *session("two", HOUR)])
    [record] = held(door)
    assert (record.kind, record.session, record.memory.session) == (
        "known command", "session/claude-code/two", "session/claude-code/one",
    )  # fmt: skip
    assert (record.calls, record.seconds, record.met, record.same_way, record.recall) == (1, 2, True, True, None)
    assert 0 < record.memory.position < record.position
    report = queries.hindsight(door.known(), EVERYWHERE)
    assert [(count.kind, count.count, count.calls) for count in report.counts if count.count] == [
        ("known command", 1, 1)
    ]
    assert [(week.count, week.recalled) for week in report.weeks] == [(1, 0)]
    explained = queries.explained(door.known(), EVERYWHERE, record.id[:8])
    assert explained is not None
    assert explained.why.startswith("`rtk bun` had failed so before")
    assert explained.unsaid == "no hook of this session asked memory"
    left = MemoryRecalled(hook="UserPromptSubmit", passed_over=(PassedOver(record.memory.id, 0.31, "weak"),))
    append(door.connection, 1, [stated("session/claude-code/two", left, "left", at=HOUR)])
    explained = queries.explained(door.known(), EVERYWHERE, record.id[:8])
    assert explained.unsaid == f"found at UserPromptSubmit and left out, with a score of 0.31: {BECAUSE['weak']}"
    with pytest.raises(queries.NoSuchRecord):
        queries.explained(door.known(), EVERYWHERE, "zzzz")


def test_what_was_imported_after_the_need_was_not_held(door: Door) -> None:
    append(door.connection, 1, session("two", HOUR))
    append(door.connection, 1, session("one", 0))
    assert held(door) == []


def test_a_memory_that_was_put_before_the_agent_was_recalled(door: Door) -> None:
    append(door.connection, 1, [*session("one", 0), *session("two", HOUR), *session("three", 2 * HOUR)])
    door.known()
    [pattern] = [
        keyed.key
        for keyed in page(door.known(), models.memories, "occurred_at", [], limit=50)[0]
        if keyed.row.kind == "bug_pattern"
    ]

    def recall(name: str, at: int, withheld: bool = False) -> NewEvent:
        memories = (RecalledMemory("another"), RecalledMemory(pattern, 0.7))
        seen = MemoryRecalled(hook="PostToolUseFailure", memories=memories, withheld=withheld)
        return stated(f"session/claude-code/{name}", seen, f"recall-{name}-{at}", at=at)

    append(door.connection, 1, [recall("two", HOUR + 3), recall("three", 2 * HOUR + 300)])
    append(door.connection, 1, [recall("three", 2 * HOUR + 3, withheld=True)])
    found = {record.session.rpartition("/")[2]: record.recall for record in held(door)}
    assert found["two"] == queries.Recall("PostToolUseFailure", 2, 0.7)
    shown = recalls(door.known(), EVERYWHERE).items
    assert [(each.session.rpartition("/")[2], each.count) for each in shown] == [("three", 2), ("two", 1)]
    [block] = shown[1].blocks
    assert [(each.id == pattern, each.rank, each.kind) for each in block.memories] == [
        (False, 1, ""), (True, 2, "bug_pattern"),
    ]  # fmt: skip
    assert found["three"] is None, "it came after the need was met, or was held back"


def test_where_memory_kept_silent_is_shown_with_the_prompt_and_why(door: Door) -> None:
    asks = prepare(observed(PromptSubmitted(line="p", text="Why does rtk fail here?"), session="two", at=HOUR))
    append(door.connection, 1, [*session("one", 0), asks])
    door.known()
    [keyed] = [
        each
        for each in page(door.known(), models.memories, "occurred_at", [], limit=50)[0]
        if each.row.kind == "bug_pattern"
    ]
    left = (PassedOver(keyed.key, 0.31, "weak"),)
    silent = MemoryRecalled(hook="UserPromptSubmit", asked_by=as_read(asks, 1).event_id, passed_over=left)
    spoke = MemoryRecalled(hook="UserPromptSubmit", memories=(RecalledMemory(keyed.key, 0.05, "files"),))
    nothing = MemoryRecalled(hook="UserPromptSubmit", silent="nothing asked")
    events = {"two": (silent, nothing), "three": (spoke,)}
    append(door.connection, 1, [
        stated(f"session/claude-code/{name}", each, f"{name}-{number}", at=HOUR + 9 + number)
        for name, of_one in events.items() for number, each in enumerate(of_one)
    ])  # fmt: skip

    def shown(said: Whether | None) -> dict[str, list[tuple[str, str]]]:
        items = recalls(door.known(), EVERYWHERE, said=said).items
        return {each.session.rpartition("/")[2]: [(b.prompt, b.silent) for b in each.blocks] for each in items}

    asked = [("", SILENT["nothing asked"]), ("Why does rtk fail here?", SILENT[""])]
    assert shown("silent") == {"two": asked}
    assert shown("spoken") == {"three": [("", "")]}
    assert shown(None) == {"two": asked, "three": [("", "")]}
    [of_three, of_two] = sorted(recalls(door.known(), EVERYWHERE).items, key=lambda each: each.session)
    assert (of_two.count, of_two.kept_silent, of_three.count) == (0, 2, 1)
    [over] = of_two.blocks[1].passed_over
    assert (over.title, over.because) == (keyed.row.title, BECAUSE["weak"])
    assert of_three.blocks[0].memories[0].by == "files"

    planned = forget.plan(load_settings(), door.known(), match="Why does rtk fail here?")
    forget.forget(load_settings(), door.connection, planned, None)
    assert shown("silent") == {"two": [asked[0], ("", SILENT[""])]}, "its row holds nothing of the prompt"


def test_what_is_looked_up_by_key_is_named_by_what_it_says(door: Door) -> None:
    append(door.connection, 1, [*session("one", 0), *session("two", HOUR)])
    reader = door.known()
    [call] = [each for each in page(reader, models.known_commands, "last_failed_at", [], limit=50)[0] if each.row.works]
    found = titles(door.known(), {call.key, "session/claude-code/one", "of-nothing"})
    assert {id: each.kind for id, each in found.items()} == {call.key: "command", "session/claude-code/one": "session"}
    assert found[call.key].title == "`rtk bun run test` fails here"


def test_what_is_forgotten_is_needed_and_held_no_more(door: Door) -> None:
    append(door.connection, 1, [*session("one", 0), *session("two", HOUR)])
    assert len(held(door)) == 1
    planned = forget.plan(load_settings(), door.known(), session="one")
    forget.forget(load_settings(), door.connection, planned, None)
    assert held(door) == []


def test_work_ends_with_its_session_a_commit_or_a_days_silence(door: Door) -> None:
    append(door.connection, 1, session("one", 0))
    totals = endings(door.known(), EVERYWHERE)
    ended = [totals[f"episodes_{how}"] for how in ("succeeded", "failed", "partial", "unknown")]
    assert sum(ended) == 1, "a day's silence"
    now = int(time.time()) - NOON // 1_000_000 - 600  # nothing is silent for a day yet
    append(door.connection, 1, session("two", now))
    assert endings(door.known(), EVERYWHERE) == totals
    append(door.connection, 1, [prepare(observed(SessionEnded(line="9", reason="exit"), session="two", at=now + 60))])
    after = endings(door.known(), EVERYWHERE)
    assert sum(after.values()) > sum(totals.values())
    assert digests(door.connection)


def test_an_error_of_which_only_the_end_is_kept_is_called_by_its_words(door: Door) -> None:
    said = " at src/totals.ts format ━━━━\n\n  × Formatter would have printed the following content:\n\nFound 1 error."
    for number in range(2):
        observations = [
            PromptSubmitted(line="1", text="Export the totals as csv"),
            ToolCalled(line="2", tool="Bash", call="a", input={"command": "bun run lint"}),
            ToolFailed(line="3", call="a", text=f"$ biome check\n{said}", exit_code=1),
            ToolCalled(line="4", tool="Bash", call="b", input={"command": "bun run lint:fix"}),
            ToolReturned(line="5", call="b", text="Checked 9 files. Fixed 1 file.", exit_code=0),
            ToolCalled(line="6", tool="Bash", call="c", input={"command": "bun run lint"}),
            ToolReturned(line="7", call="c", text="$ biome check\nChecked 9 files. No fixes applied.", exit_code=0),
        ]
        events = [
            observed(each, session=f"s{number}", at=number * 24 * HOUR + n) for n, each in enumerate(observations)
        ]
        append(door.connection, 1, [prepare(each) for each in events])
    (whole,) = [each for each in held(door) if each.kind == "known error"]
    table = table_of(door.known(), models.hindsight)
    door.connection.execute(
        sql.SQL(
            "UPDATE {} SET row = jsonb_set(row, '{{needs}}', (SELECT jsonb_agg(n || '{{\"text\": \"\"}}'::jsonb)"
            " FROM jsonb_array_elements(row->'needs') AS n)) WHERE row->>'kind' = 'known error'"
        ).format(table)
    )
    (half,) = [each for each in held(door) if each.kind == "known error"]
    assert half.what == whole.what
    assert "Formatter would have printed" in half.what
