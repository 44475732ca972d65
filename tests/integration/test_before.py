"""What memory says before a command runs or a file is edited, over a real store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from doors import Door, door_to
from events import observed, stated

from memctl.api.assist.before_tool import before_tool
from memctl.api.assist.failures import of_failure
from memctl.api.assist.recall import _traps, block
from memctl.api.queries.explain import explain
from memctl.api.queries.memories import thing
from memctl.api.reading.places import Places
from memctl.domain.events.event import NewEvent
from memctl.domain.events.observations import (
    PromptSubmitted,
    ResponseReceived,
    ToolCalled,
    ToolFailed,
    ToolReturned,
)
from memctl.domain.events.recalls import MemoryRecalled, RecalledMemory
from memctl.domain.language.notes import MemoryNoted
from memctl.infra.log.append import append
from memctl.infra.readmodels import generations
from memctl.infra.redaction import prepare

SHOP = "/work/shop"
HERE = Places("shop", "here", (SHOP,))
NOW = "session/claude-code/now"
USAGE = "error: unrecognized subcommand 'bun'\n\nUsage: rtk [OPTIONS] <COMMAND>"


@pytest.fixture
def door(postgres_server: str, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    data = tmp_path_factory.mktemp("data")
    with door_to(postgres_server, migrated_template, data, location=SHOP) as door:
        generations.ensure_live(door.connection, 2)
        yield door


def session(
    name: str, *uses: tuple[str, str], at: int = 0, works: str = "bun run test", location: str = SHOP
) -> list[NewEvent]:
    """A command that fails, and the form of it that works, by default."""
    told: list[Any] = [PromptSubmitted(line=f"{name}-1", text="Run the tests of the shop and say what fails")]
    for number, (command, output) in enumerate(uses or (("rtk bun run test", USAGE), (works, "")), 1):
        told.append(ToolCalled(line=f"{number}a", tool="Bash", call=str(number), input={"command": command}))
        ended = ToolFailed if output else ToolReturned
        told.append(ended(line=f"{number}b", call=str(number), text=output or "12 pass", exit_code=2 if output else 0))
    return [
        prepare(observed(payload, session=name, at=number, location=location))
        for number, payload in enumerate(told, at)
    ]


def before(door: Door, tool: str = "Bash", stream: str = NOW, **given: str) -> list[str]:
    payload: Any = {"tool_name": tool, "tool_input": given, "cwd": SHOP}
    lines = before_tool(door.known(), payload, HERE, stream)
    shown = block("", lines).text
    return [each.text for each in lines if each.text in shown]


def test_a_call_that_was_wrong_before_is_met_with_the_form_that_works(door: Door) -> None:
    append(door.connection, 1, session("one"))
    [text] = before(door, command="cd api && rtk bun run lint --fix 2>&1 | tail -5")
    assert '"rtk bun run test" fails here' in text
    assert "unrecognized subcommand 'bun'" in text
    assert text.partition("what works: ")[2].startswith('"bun run test" in the directory "shop"')
    assert before(door, command="bun run test") == []
    assert before(door, tool="Read", file_path="/work/shop/a.py") == []


def at_a_start(door: Door) -> list[str]:
    return [each.text for each in _traps(door.known(), HERE, NOW)]


def test_a_start_names_a_call_that_failed_in_two_sessions_with_the_form_that_works(door: Door) -> None:
    append(door.connection, 1, session("one"))
    assert at_a_start(door) == [], "once is chance"
    append(door.connection, 1, session("two", at=100))
    [text] = at_a_start(door)
    assert '"rtk bun run test" fails here' in text
    assert text.partition("what works: ")[2].startswith('"bun run test"')


def test_what_is_said_can_be_looked_at_and_explained_by_its_id(door: Door) -> None:
    append(door.connection, 1, [*session("one"), *session("two", at=100)])
    failed = UNFORMATTED.format("cart")
    concluded = ResponseReceived(
        line="9", text="The format error in `src/cart.ts` is pre-existing, not from my change."
    )
    told = [
        *session("three", ("bun run lint", failed)),
        prepare(observed(concluded, session="three", at=9, location=SHOP)),
    ]
    append(door.connection, 1, told)
    of_calls, of_errors = (
        [*at_a_start(door), *before(door, command="rtk bun run lint")],
        after(door, "bun run lint", failed),
    )
    assert len(of_calls) == 2
    assert len(of_errors) == 1
    for kind, said in (("command", of_calls), ("error", of_errors)):
        for id in (each.rpartition("id ")[2].rstrip(")") for each in said):
            assert thing(door.known(), id).kind == kind
            assert explain(door.known(), id).text


def test_a_start_names_no_call_whose_working_form_installs(door: Door) -> None:
    for number, name in enumerate(("one", "two")):
        uses = (("rtk bun run test", USAGE), ("pip install bun", ""))
        append(door.connection, 1, session(name, *uses, at=100 * number))
    assert at_a_start(door) == []


def test_nothing_is_said_where_no_form_is_known_or_the_call_went_well_since(door: Door) -> None:
    append(door.connection, 1, session("one", ("rtk bun run test", USAGE)))
    assert before(door, command="rtk bun run test") == []
    append(door.connection, 1, session("two", at=100))
    assert before(door, command="rtk bun run test") != []
    append(door.connection, 1, session("three", ("rtk bun run test", ""), at=200))
    assert before(door, command="rtk bun run test") == []


def test_a_session_is_not_warned_of_what_it_met_itself_or_was_warned_of(door: Door) -> None:
    append(door.connection, 1, session("one"))
    assert before(door, stream="session/claude-code/one", command="rtk bun run test") == []
    payload: Any = {"tool_name": "Bash", "tool_input": {"command": "rtk bun run test"}, "cwd": SHOP}
    [(_, memory, _)] = before_tool(door.known(), payload, HERE, NOW)
    seen = MemoryRecalled(hook="PreToolUse", memories=(RecalledMemory(memory.id),))
    append(door.connection, 1, [stated(NOW, seen, "seen", at=9)])
    assert before(door, command="rtk bun run test") == []


def test_a_form_that_installs_or_downloads_is_not_volunteered(door: Door) -> None:
    append(door.connection, 1, session("one", works="sudo bun run test"))
    assert before(door, command="rtk bun run test") == []


def test_another_project_warns_of_nothing(door: Door) -> None:
    append(door.connection, 1, session("one", location="/work/other"))
    assert before(door, command="rtk bun run test") == []


def test_a_verified_claim_that_names_a_file_is_said_before_it_is_edited(door: Door) -> None:
    note = MemoryNoted(text="Amounts in ledger_totals.py are Decimal, never float.", kind="fact")
    append(door.connection, 1, [msgspec.structs.replace(stated("knowledge/notes", note, "note", at=1), location=SHOP)])
    [text] = before(door, tool="Edit", file_path=f"{SHOP}/core/ledger_totals.py", old_string="a", new_string="b")
    assert "never float" in text
    assert before(door, tool="Edit", file_path=f"{SHOP}/core/totals.py", old_string="a", new_string="b") == []
    assert before(door, tool="Read", file_path=f"{SHOP}/core/ledger_totals.py") == []


def after(door: Door, command: str, error: str) -> list[str]:
    payload: Any = {"tool_name": "Bash", "tool_input": {"command": command}, "cwd": SHOP, "error": error}
    return [each.text for each in of_failure(door.known(), payload, HERE, NOW)]


MISSING = 'npm error Missing script: "test:untis"'


def test_a_wrong_call_that_failed_is_met_with_the_form_that_works(door: Door) -> None:
    append(door.connection, 1, session("s1", ("npm run test:untis", MISSING), ("npm run test", "")))
    [said] = after(door, "npm run test:untis", f"Exit code 1\n{MISSING}")
    assert 'what works: "npm run test"' in said
    assert after(door, "npm run lint", 'npm error Missing script: "lint"') == []


def test_a_form_that_only_leaves_out_words_is_said_too(door: Door) -> None:
    append(door.connection, 1, session("s1"))
    [said] = after(door, "rtk bun run test", USAGE)
    assert said.partition("what works: ")[2].startswith('"bun run test"')


UNFORMATTED = "src/{}.ts format ━━━━━━━━━━━━━━\n\n  × Formatter would have printed the following content:\n"


def ended_by(name: str, *commands: str, at: int = 0, location: str = SHOP) -> list[NewEvent]:
    """A session whose check fails, and passes after these commands."""
    uses = (("bun run lint", UNFORMATTED.format(name)), *((each, "") for each in commands), ("bun run lint", ""))
    return session(name, *uses, at=at, location=location)


def test_an_error_is_met_with_the_way_out_that_sessions_share(door: Door) -> None:
    append(door.connection, 1, ended_by("other", "bun run lint:fix", at=100, location="/work/elsewhere/shop"))
    assert after(door, "bun run lint", UNFORMATTED.format("new")) == [], "of another project"
    append(door.connection, 1, ended_by("cart", "bun run lint:fix"))
    [said] = after(door, "bun run lint", UNFORMATTED.format("new"))
    assert "in one session running `bun run lint:fix` ended it" in said
    append(door.connection, 1, ended_by("total", "bun run lint:fix", at=200))
    [said] = after(door, "bun run lint", UNFORMATTED.format("new"))
    assert "in 2 of 2 sessions running `bun run lint:fix` ended it" in said
    assert after(door, "bun run lint", UNFORMATTED.format("new") + "Run bun run lint:fix to mend it.") == []


def test_a_failure_that_a_pipe_hid_is_met_by_what_only_a_failure_prints(door: Door) -> None:
    for number in range(2):
        append(door.connection, 1, ended_by(f"s{number}", "bun run lint:fix", at=100 * number))

    def hidden(command: str, output: str) -> list[str]:
        ran: Any = {"tool_input": {"command": command}, "cwd": SHOP, "tool_response": {"stdout": output, "stderr": ""}}
        payload = {"hook_event_name": "PostToolUse", "tool_name": "Bash", **ran}
        return [each.text for each in of_failure(door.known(), payload, HERE, NOW)]

    [said] = hidden("bun run lint 2>&1 | tail -20", UNFORMATTED.format("new"))
    assert "running `bun run lint:fix` ended it" in said
    assert hidden("bun run lint", UNFORMATTED.format("new")) == [], "its exit code says that it went well"
    assert hidden("cat lint.log | tail -20", UNFORMATTED.format("new")) == [], "a quotation"
    assert hidden("bun run lint 2>&1 | tail -20", "Checked 12 files") == []


def test_a_failure_that_a_pipe_hid_is_met_by_what_an_earlier_session_concluded_of_it(door: Door) -> None:
    failed = UNFORMATTED.format("cart")
    concluded = ResponseReceived(
        line="9", text="The format error in `src/cart.ts` is pre-existing, not from my change."
    )
    told = session("one", ("bun run lint", failed))
    append(door.connection, 1, [*told, prepare(observed(concluded, session="one", at=9, location=SHOP))])
    ran: Any = {"tool_input": {"command": "bun run lint 2>&1 | tail -20"}, "cwd": SHOP, "tool_response": failed}
    payload = {"hook_event_name": "PostToolUse", "tool_name": "Bash", **ran}
    [said] = [each.text for each in of_failure(door.known(), payload, HERE, NOW)]
    assert "was there before" in said


def test_a_shared_way_out_that_installs_is_not_volunteered(door: Door) -> None:
    for number in range(2):
        append(door.connection, 1, ended_by(f"s{number}", "npm install biome", at=100 * number))
    assert after(door, "bun run lint", UNFORMATTED.format("new")) == []
