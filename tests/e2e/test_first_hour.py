"""The whole of memctl as its user meets it: up, ingest, search, replay, hooks, down. Real processes throughout."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import anyio
import psycopg
import published
import pytest
from commandline import Memctl
from histories import ROOT
from waiting import until

from memctl.domain.events.event import Micros, type_of
from memctl.infra.data_dir import Folders
from memctl.infra.embedded.supervisor import State, silent
from memctl.infra.hooks.payloads import parse_hook


def test_everything_runs_and_says_so(memctl: Memctl) -> None:
    status = memctl.json("status")
    assert {program["name"] for program in status["programs"]} == {
        "postgres", "valkey", "vectors", "door", "api", "worker",
    }  # fmt: skip
    assert all(program["well"] for program in status["programs"])


def test_a_second_up_changes_nothing(memctl: Memctl) -> None:
    before = [program["pid"] for program in memctl.json("status")["programs"]]
    memctl("up")
    assert [program["pid"] for program in memctl.json("status")["programs"]] == before


def test_ingesting_again_adds_nothing_and_the_account_is_what_scripts_rely_on(memctl: Memctl) -> None:
    account = memctl.json("ingest", "--example", "--again")
    assert account["files"] == 1
    assert account["events"]["new"] == 0
    assert account["events"]["duplicate"] > 20
    assert account["bad"] == []
    assert isinstance(account["ignored"], dict)


def test_a_search_finds_the_work_with_evidence_that_holds(memctl: Memctl) -> None:
    hits = memctl.json("search", "csv export of monthly totals")
    assert hits
    top = hits[0]
    assert set(top) >= {"id", "text", "score", "class", "bucket", "project", "occurred_at", "evidence"}
    assert top["class"] in ("high", "suggested", "none")
    assert "CSV export" in top["text"]
    for evidence in top["evidence"]:
        assert set(evidence) >= {"event_id", "source", "start", "end", "quote"}
        assert set(evidence["source"]) >= {"agent", "session", "line"}
        assert evidence["holds"]
        assert evidence["quote"]


def test_an_error_that_occurred_is_recognised_with_its_fix(memctl: Memctl) -> None:
    answer = memctl.json("bugs", "TypeError: unsupported operand type(s) for *: 'float' and 'decimal.Decimal'")
    hit = answer["hits"][0]
    assert hit["score"] > 0.5
    assert any("totals.py" in edit["path"] for edit in hit["solution"]["edits"])


def test_what_was_never_seen_is_not_found_and_the_exit_code_says_so(memctl: Memctl) -> None:
    memctl("bugs", "error[E0382]: borrow of moved value: `quux`", code=3)


def test_what_a_user_said_about_the_project_is_known(memctl: Memctl) -> None:
    claims = memctl.json("insights")
    assert any("Decimal" in claim["text"] for claim in claims)


@pytest.mark.parametrize("verb", ["history", "episodes", "stats", "events"])
def test_every_reading_verb_answers_in_words_and_in_json(memctl: Memctl, verb: str) -> None:
    assert memctl(verb).strip()
    assert memctl.json(verb)


def test_an_id_of_any_answer_can_be_shown(memctl: Memctl) -> None:
    hit = memctl.json("search", "csv export of monthly totals")[0]
    assert memctl.json("show", hit["id"])
    assert memctl("show", hit["evidence"][0]["event_id"]).strip()
    memctl("show", "ffffffff-0000", code=3)


def test_a_replay_ends_in_what_was_live(memctl: Memctl) -> None:
    shown = memctl.json("replay", "--all", "--verify")
    models = shown["read_models"]
    assert set(models) >= {
        "sessions", "working_memory", "tasks", "episodes", "insights", "verified_knowledge", "bug_patterns",
        "memories", "vector_points", "vectors",
    }  # fmt: skip
    for model in models.values():
        assert set(model) >= {"rows", "digest_live", "digest_rebuilt", "equal"}
        assert model["equal"]
    assert models["vectors"]["rows"] == models["vector_points"]["rows"] > 0


def test_a_corrupted_row_is_named_and_gone_after_the_replay(memctl: Memctl) -> None:
    url = memctl.database_url
    with psycopg.connect(url, autocommit=True) as connection:
        live = connection.execute("SELECT stage2 FROM memctl.projection_state").fetchone()
        assert live is not None
        changed = connection.execute(
            f'UPDATE memctl.bug_patterns_g{live[0]} SET row = row || \'{{"template": "other"}}\''
            f" WHERE key = (SELECT min(key) FROM memctl.bug_patterns_g{live[0]}) RETURNING key"
        ).fetchone()
        assert changed is not None
    shown = memctl.json("replay", "bug_patterns", "--verify", code=1)
    assert changed[0] in shown["read_models"]["bug_patterns"]["differing"]
    assert memctl.json("replay", "bug_patterns", "--verify")["equal"]


def test_an_unknown_read_model_is_refused_with_those_that_exist(memctl: Memctl) -> None:
    memctl("replay", "nonsense", code=2)
    assert "bug_patterns" in memctl.said


def hook(text: str) -> bytes:
    return json.dumps(
        {
            "hook_event_name": "UserPromptSubmit",
            "session_id": "hook-session",
            "cwd": "/home/dana/ledger",
            "prompt": text,
        }
    ).encode()


def stored(memctl: Memctl, text: str) -> int:
    with psycopg.connect(memctl.database_url) as connection:
        row = connection.execute("SELECT count(*) FROM memctl.events WHERE payload->>'text' = %s", [text]).fetchone()
        assert row is not None
        return int(row[0])


def test_a_hook_payload_is_kept_and_nothing_is_printed(memctl: Memctl) -> None:
    assert memctl("ingest", "--stdin", stdin=hook("please keep this prompt")) == ""
    assert memctl.said == ""
    until(lambda: stored(memctl, "please keep this prompt") == 1)  # by way of the spool, where the machine is busy


@pytest.mark.parametrize("payload", [b"", b"not json", b"[]", b"{}", b"\xff\xfe", b'{"hook_event_name": "Brandnew"}'])
def test_a_hook_that_cannot_be_understood_never_disturbs_the_agent(memctl: Memctl, payload: bytes) -> None:
    assert memctl("ingest", "--stdin", stdin=payload) == ""
    assert memctl.said == ""


def test_every_documented_hook_payload_is_taken(memctl: Memctl) -> None:
    samples = [sample.read_bytes() for sample in sorted(published.HOOKS.glob("*.input.*.json"))]
    if not samples:
        pytest.skip(published.lacking(published.HOOKS))
    told: Counter[tuple[str, str]] = Counter()
    for number, sample in enumerate(samples):
        assert memctl("ingest", "--stdin", stdin=sample) == ""
        assert memctl.said == ""
        parsed = parse_hook(sample, str(number), Micros(1))
        told.update((event.stream, type_of(event.payload).name) for event in parsed.events)
    assert len(told) > 6

    def kept() -> Counter[tuple[str, str]]:
        with psycopg.connect(memctl.json("config")["database_url"]) as connection:
            streams = sorted({stream for stream, _ in told})
            rows = connection.execute("SELECT stream, type FROM memctl.events WHERE stream = ANY(%s)", [streams])
            return Counter((stream, type) for stream, type in rows)

    until(lambda: kept() == told)  # by way of the spool, where the machine is busy


def test_a_hook_whose_door_is_down_is_spooled_and_drained_once(memctl: Memctl) -> None:
    door = next(p for p in memctl.json("status")["programs"] if p["name"] == "door")["pid"]
    os.kill(door, signal.SIGSTOP)
    os.kill(door, signal.SIGKILL)
    said = f"said while the door was down, {time.time_ns()}"
    assert memctl("ingest", "--stdin", stdin=hook(said)) == ""
    until(lambda: stored(memctl, said) == 1)
    until(lambda: not list((memctl.data / "spool").glob("*.delivery")))
    assert stored(memctl, said) == 1


def test_a_program_that_a_signal_has_stopped_is_named(memctl: Memctl) -> None:
    guard = next(p for p in memctl.json("status")["programs"] if p["name"] == "worker")["pid"]
    places = Folders(memctl.data)
    running = State("worker", "RUNNING", guard, 0)
    assert silent(places, [running]) == ()
    os.kill(guard, signal.SIGSTOP)
    try:
        until(lambda: silent(places, [running]) == ("worker",))
    finally:
        os.kill(guard, signal.SIGCONT)
    assert silent(places, [running]) == ()


def test_each_command_has_help() -> None:
    from click.testing import CliRunner

    from memctl.cli.commands import COMMANDS
    from memctl.cli.main import memctl as commands

    for name in COMMANDS:
        told = CliRunner().invoke(commands, [name, "--help"])
        assert told.exit_code == 0
        assert told.output.startswith("Usage:")


def _reads() -> frozenset[str]:
    """The verbs that change nothing: those that look back in time, and some more."""
    from documents import everything

    from memctl.cli.main import memctl as commands

    looking_back = {
        " ".join(path) for path, verb in everything(commands) if any("--as-of" in each.opts for each in verb.params)
    }
    others = {"status", "events", "core", "costs", "config", "completion", "keys list", "dlq list", "dlq show"}
    return frozenset(looking_back | others)


READS = _reads()


def test_every_example_in_the_help_of_a_command_that_only_reads_finds_something_or_nothing(memctl: Memctl) -> None:
    from click.testing import CliRunner
    from documents import everything, examples

    from memctl.cli.main import memctl as commands

    run, ran = CliRunner(env=memctl.environment), set()
    for path, command in everything(commands):
        name = " ".join(path)
        for words in examples(command.help or "") if name in READS else ():
            done = run.invoke(commands, words, input="TypeError: unsupported operand type(s) for *")
            code = getattr(done.exception, "exit_code", done.exit_code)
            assert code in (0, 3), f"memctl {' '.join(words)}: {done.exception!r}"
            ran.add(name)
    assert ran == READS


LOOKS = {("forget", "--dry-run"), ("prune", "--dry-run"), ("import", "--dry-run"), ("replay", "--status")}
"""Commands that change something, and the option with which they only look."""


def test_every_command_on_a_page_that_only_looks_finds_something_or_nothing(memctl: Memctl) -> None:
    from click.testing import CliRunner
    from documents import PAGES, commands

    from memctl.cli.main import memctl as all_commands

    run, ran = CliRunner(env=memctl.environment), 0
    for page in PAGES:
        for words in commands(page):
            looks = any(words[0] == verb and option in words for verb, option in LOOKS)
            if "…" in words or not (looks or words[0] in READS or " ".join(words[:2]) in READS):
                continue
            done = run.invoke(all_commands, words, input="TypeError: unsupported operand type(s) for *")
            code = getattr(done.exception, "exit_code", done.exit_code)
            assert code in (0, 3), f"{page.name}: memctl {' '.join(words)}: {done.exception!r}"
            ran += 1
    assert ran > 20


def test_a_command_that_is_not_there_is_a_usage_error(memctl: Memctl) -> None:
    memctl("frobnicate", code=2)


def test_without_a_running_memctl_a_search_says_what_to_do(memctl: Memctl, tmp_path: Path) -> None:
    other = Memctl(tmp_path)
    other("search", "anything", code=1)
    assert "memctl up" in other.said


def test_following_takes_in_what_is_written_meanwhile_and_ends_when_asked(memctl: Memctl, tmp_path: Path) -> None:
    first, *others = (
        (ROOT / "infra" / "example" / "session.jsonl").read_text().replace("3f6f1d52", "77777777").splitlines()
    )
    file = tmp_path / "live.jsonl"
    file.write_text(first.replace("Invoice totals", "Followed totals") + "\n")
    memctl("off", "--session", "88888888-6c0e-4b7e-9d6f-2f6b1f6b8a01")

    def known(text: str) -> bool:
        with psycopg.connect(memctl.database_url) as connection:
            found = connection.execute(
                "SELECT 1 FROM memctl.events WHERE payload->>'text' LIKE %s", [f"%{text}%"]
            ).fetchone()
            return found is not None

    following = subprocess.Popen(
        [sys.executable, "-m", "memctl.cli", "ingest", str(tmp_path), "--follow", "--json"],
        env=memctl.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: known("Followed totals"))
        unsaved = first.replace("77777777", "88888888").replace("Invoice totals", "Unsaved totals")
        unsaved = re.sub(r'(?<="timestamp": ")[^"]+', datetime.now(UTC).isoformat(), unsaved)
        (tmp_path / "off.jsonl").write_text(unsaved + "\n")
        with file.open("a") as more:
            more.write(others[0].replace("run the tests first", "watch the tests first") + "\n")
        until(lambda: known("watch the tests first"))
        following.send_signal(signal.SIGTERM)  # SIGINT is ignored in what a shell runs in the background
        out, _ = following.communicate(timeout=30)
    finally:
        following.kill()
    assert following.returncode == 0
    assert json.loads(out)["events"]["new"] >= 2
    assert not known("Unsaved totals"), "where saving is off, following keeps nothing either"


def test_a_file_that_is_no_transcript_is_named_and_not_passed_over_in_silence(memctl: Memctl, tmp_path: Path) -> None:
    stranger = tmp_path / "notes.txt"
    stranger.write_text("hello world\n")
    memctl("ingest", str(stranger), code=3)
    assert "notes.txt is no transcript" in memctl.said


def test_a_replay_that_compares_nothing_claims_nothing(memctl: Memctl) -> None:
    assert memctl.json("replay", "stats")["equal"] is None


def test_an_agent_asks_over_mcp(memctl: Memctl) -> None:
    from mcp import ClientSession
    from mcp.client.stdio import StdioServerParameters, stdio_client

    async def ask() -> dict[str, str]:
        arguments = ["-m", "memctl.cli", "mcp"]
        parameters = StdioServerParameters(command=sys.executable, args=arguments, env=memctl.environment)
        answers: dict[str, str] = {}
        async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            answers["tools"] = " ".join(sorted(tool.name for tool in (await session.list_tools()).tools))
            for tool, given in (
                ("search", {"query": "invoice totals rounding", "project": "*"}),
                ("find_fix", {"error": "TypeError: unsupported operand", "project": "*"}),
                ("timeline", {"project": "*"}),
                ("knowledge", {"project": "*"}),
                ("note", {"text": "The nightly job of this project writes to the archive bucket."}),
                ("get", {"id": "00000000-nothing"}),
                ("search", {"query": ""}),
            ):
                result = await session.call_tool(tool, given)
                text = "".join(block.text for block in result.content if block.type == "text")
                answers[tool if not result.is_error else f"{tool} failed"] = text
        return answers

    answers = anyio.run(ask)
    assert {"explain", "find_fix", "get", "knowledge", "note", "search", "timeline"} <= set(answers["tools"].split())
    assert '"Invoice totals are off by a cent for some customers.' in answers["search"]
    assert "fix, worked" in answers["find_fix"]
    assert "success (tests passed after the last change)" in answers["timeline"]
    assert (
        '"In this project we always use Decimal for money, never float." (fact, said by you, verified, 2026'
        in answers["knowledge"]
    )
    assert answers["note"] == "noted"
    assert "Memory holds nothing under '00000000-nothing'" in answers["get failed"]
    assert "Ids come from" in answers["get failed"]
    assert "`q` is empty" in answers["search failed"]
