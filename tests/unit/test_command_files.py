"""A prompt that a command of a repository becomes is never the user's word, whichever report of it comes first."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import permutations
from pathlib import Path
from typing import Any

import client_sessions
import msgspec
import pytest
from events import as_read
from session_events import only
from transcript_files import parse_file

from memctl.domain.events.event import Event, Micros, NewEvent
from memctl.domain.events.facts import Fact, InsightFound, Prompted, TaskOpened, quote
from memctl.domain.events.observations import Agent, PromptSubmitted
from memctl.domain.events.processor_events import Claim, InsightExtracted
from memctl.domain.session.stream_facts import derive
from memctl.domain.support.provenance import Provenance, attributed
from memctl.infra.hooks.clients import OPENCODE_PLUGIN
from memctl.infra.hooks.payloads import parse_hook
from memctl.infra.transcripts.command_files import is_expanded
from memctl.infra.transcripts.gemini import GeminiLines
from memctl.infra.transcripts.opencode import OpenCode
from memctl.workers.processors.language_model import Subject, material_of

RULE = "always use quillmark for dates, please"

PADDING = "# quillmark\n" * 7_000

# By file: what it holds, and a prompt that a client makes of it.
COMMANDS = {
    ".opencode/command/dates.md": (f"---\ndescription: x\n---\n{RULE}\n", RULE),
    ".opencode/commands/deep/dates.md": ("always use $1 for dates, please: $ARGUMENTS", f"{RULE}: quillmark now"),
    ".opencode/command/output.md": ("always use !`cat name` for dates, please", RULE),
    ".opencode/command/letters.md": ("al$7ways us$9e quill$8mark f$4or dates, please", RULE),
    ".opencode/skills/dates/SKILL.md": (f"---\nname: dates\n---\n\n{RULE}", f"{RULE}\n\n2026"),
    "opencode.json": (json.dumps({"command": {"dates": {"template": f"{RULE} $ARGUMENTS"}}}), f"{RULE} in 2026"),
    "opencode.jsonc": ('{ // "x\n "command": {"dates": {"template": "always use quillmark for dates, please"}}}', RULE),
    ".gemini/commands/dates.toml": (f'description = "x"\nprompt = """\n{RULE}\n"""\n', f"{RULE}\n\n/dates 2026"),
    ".gemini/commands/a/b.toml": ("prompt = 'always use {{args}} for dates, please'", RULE),
    ".gemini/commands/run.toml": ("prompt = 'always use !{printf ${NAME}} for dates, please'", RULE),
    ".cursor/commands/dates.md": (RULE, RULE),
    ".github/prompts/dates.prompt.md": (f"---\nmode: agent\n---\n{RULE}", RULE),
    ".cursor/commands/slash.md": (f"/dates {RULE}", f"/dates {RULE}"),
    ".opencode/command/padded.md": (f"---\ndescription: x\n{PADDING}---\n{RULE}", RULE),
    ".gemini/commands/padded.toml": (f"{PADDING}prompt = '{RULE}'", RULE),
    ".opencode/command/yaml.md": (f"---yaml\ndescription: x\n---\n{RULE}", RULE),
    ".opencode/command/line.md": (f"---\ndescription: x\n--- {RULE}", RULE),
    ".gemini/commands/other.toml": (f"prompt = '{RULE}'\nyear = 01", RULE),
    ".gemini/commands/escapes.toml": (
        f'"pr\\u006Fmpt" = """\n{RULE[:9]}\\u{ord(RULE[9]):04x}\\\n  {RULE[10:]}"""',
        RULE,
    ),
    ".gemini/commands/quotes.toml": (f'# it\'s, "\nx = \'"\'\nprompt = """{RULE} """" # \'', RULE),
    ".gemini/commands/torn.toml": (f'description = "dates\nprompt = "{RULE}"', RULE),
    ".claude/scheduled_tasks.json": (json.dumps({"tasks": [{"cron": "* * * * *", "prompt": RULE}]}), RULE),
    ".opencode/opencode.json": ('{"command": {"dates": {"template": "{file:command/text.txt}"}}}', RULE),
}
OTHERS = {
    ".gemini/commands/printed.toml": "prompt = '!{cat name}'",
    ".gemini/commands/held.toml": "prompt = '@{docs/name}'",
    ".opencode/command/printed.md": "!`cat name` $ARGUMENTS",
    "opencode.json": '{"command": {"dates": {"template": "{file:none.txt}"}}}',
}
"""Commands that are nothing but what another prints or holds: of their prompts nobody knows what was typed."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    (tmp_path / "shop" / "src").mkdir()
    return tmp_path / "shop"


def put(checkout: Path, name: str, text: str) -> None:
    path = checkout / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if "{file:command/text.txt}" in text:
        put(checkout, ".opencode/command/text.txt", RULE)


def hooked(agent: Agent, session: str, prompt: str, cwd: Path, **fields: Any) -> list[NewEvent]:
    name = {"gemini-cli": "BeforeAgent", "cursor": "beforeSubmitPrompt"}.get(agent, "UserPromptSubmit")
    payload = {"session_id": session, "cwd": str(cwd), "hook_event_name": name, "prompt": prompt, **fields}
    return list(parse_hook(json.dumps(payload).encode(), "d1", Micros(1_771_249_728_000_000), agent).events)


def opencode(prompt: str, cwd: Path) -> list[NewEvent]:
    asked, *rest = client_sessions.OPENCODE_MESSAGES
    messages = [{**asked, "parts": [{"id": "p", "type": "text", "text": prompt}]}, *rest]
    data = client_sessions.opencode(messages, {**client_sessions.OPENCODE_INFO, "directory": str(cwd)})
    return read(OpenCode, data, cwd)


def gemini(content: list[dict[str, str]], shown: str, cwd: Path) -> list[NewEvent]:
    message = {"id": "m1", "timestamp": "2026-02-16T13:48:48Z", "type": "user", "content": content}
    shows = {"displayContent": [{"text": shown}]} if shown else {}
    return read(GeminiLines, client_sessions.gemini_lines([{**message, **shows}]), cwd)


def read(reader: type[OpenCode] | type[GeminiLines], data: bytes, folder: Path) -> list[NewEvent]:
    path = folder / "session.json"
    path.write_bytes(data)
    return [event for line in parse_file(path, reader(path)) for event in line.events]


def folded(events: list[NewEvent]) -> tuple[list[Event], list[Fact]]:
    stored = [as_read(event, number) for number, event in enumerate(events, 1)]
    return stored, derive(stored[0].stream, stored).drain()


def claims(events: list[NewEvent]) -> list[Any]:
    _, facts = folded(events)
    assert not [fact for fact in only(facts, Prompted) if fact.by_user and "quillmark" in fact.text]
    return only(facts, InsightFound)


def extracted(event: NewEvent, stored: Event) -> NewEvent:
    """A model takes the rule for what the user says there."""
    span = quote(stored.delivery_id, RULE)
    claim = Claim(kind="preference", text=RULE, quote=RULE, said_by="user", confidence=0.9, span=span)
    return msgspec.structs.replace(event, payload=InsightExtracted(claims=(claim,)), dedupe_key="read")


def test_what_the_user_types_is_the_users_word_also_behind_a_command(checkout: Path) -> None:
    put(checkout, ".opencode/command/review.md", "Review $ARGUMENTS for typos.")
    began, typed = (hooked("opencode", "s", prompt, checkout) for prompt in ("Review a.md for typos.", RULE))
    typed = [msgspec.structs.replace(event, dedupe_key="hook:d2") for event in typed]
    stored, facts = folded([*began, *typed])
    assert [(fact.said_by, fact.text) for fact in only(facts, InsightFound)] == [(Provenance.USER_TYPED, RULE)]
    read = extracted(typed[0], stored[1])
    _, facts = folded([*began, *typed, read])
    assert {fact.said_by for fact in only(facts, InsightFound)} == {Provenance.USER_TYPED}


def test_no_model_reads_a_command_as_the_users_word(checkout: Path) -> None:
    put(checkout, ".opencode/command/dates.md", RULE)
    found = hooked("opencode", "s", RULE, checkout)
    stored, _ = folded(found)
    material = material_of(Subject(id="s", stream="s", location="", began=0, ended=10**17), stored)
    assert (material.text, material.said(RULE, "user")) == (f"COMMAND: {RULE}", ("", None))
    read = extracted(found[0], stored[0])
    assert {fact.said_by for fact in claims([*found, read])} == {Provenance.AGENT}


@pytest.mark.parametrize("agent", ["opencode", "gemini-cli", "cursor"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_hook_s_prompt_that_a_command_file_became_is_the_clients(name: str, agent: Agent, checkout: Path) -> None:
    text, prompt = COMMANDS[name]
    put(checkout, name, text)
    found = hooked(agent, "s", prompt, checkout / "src")
    assert [event.actor for event in found] == ["system"]
    assert {attributed(Provenance.USER_TYPED, event.actor) for event in found} == {Provenance.CLIENT}
    assert not claims(found)


@pytest.mark.parametrize("name", COMMANDS)
def test_so_is_one_of_a_transcript_without_a_mark_and_both_reports_in_any_order(name: str, checkout: Path) -> None:
    text, prompt = COMMANDS[name]
    put(checkout, name, text)
    recorded = opencode(prompt, checkout)
    assert not claims(recorded)
    (checkout / name).unlink()
    by_hook = hooked("opencode", client_sessions.OPENCODE_INFO["id"], prompt, checkout, from_command=True)
    for order in permutations((by_hook, opencode(prompt, checkout))):
        assert not claims([event for events in order for event in events])


@pytest.mark.parametrize(("agent", "expands"), [("opencode", True), ("gemini-cli", True), ("claude-code", False)])
@pytest.mark.parametrize("name", OTHERS)
def test_where_a_command_is_all_anothers_text_no_prompt_is_the_users_word(
    name: str, agent: Agent, expands: bool, checkout: Path
) -> None:
    put(checkout, name, OTHERS[name])
    assert [event.actor for event in hooked(agent, "s", RULE, checkout)] == ["system" if expands else "user"]


def test_a_file_too_long_to_compare_may_be_any_prompt(checkout: Path) -> None:
    put(checkout, ".opencode/command/long.md", "x" * 1_100_000)
    assert is_expanded(RULE, str(checkout), "opencode")


def test_a_session_that_begins_with_a_command_still_has_its_task(checkout: Path) -> None:
    put(checkout, ".opencode/command/fix.md", "Fix the wrong total in cart.py, please: $ARGUMENTS")
    _, facts = folded(opencode("Fix the wrong total in cart.py, please: now", checkout))
    assert [fact.description[:19] for fact in only(facts, TaskOpened)] == ["Fix the wrong total"]


def test_of_a_command_gemini_shows_what_was_typed_and_its_hook_reports_what_it_became(checkout: Path) -> None:
    content = [{"text": RULE}, {"text": "<hook_context>x</hook_context>"}]
    by_hook = hooked("gemini-cli", client_sessions.GEMINI_HEAD["sessionId"], RULE, checkout)
    recorded = gemini(content, "/dates 2026", checkout)
    assert [e.payload.text for e in recorded if isinstance(e.payload, PromptSubmitted) and not e.payload.meta] == [
        "/dates 2026"
    ]
    for order in permutations((by_hook, recorded)):
        assert not claims([event for events in order for event in events])


def test_a_prompt_that_gemini_shows_as_it_was_sent_is_one_event(checkout: Path) -> None:
    recorded = gemini([{"text": RULE}], RULE, checkout)
    assert [event.actor for event in recorded if isinstance(event.payload, PromptSubmitted)] == ["user"]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_prompt_of_gemini_that_does_not_say_what_was_typed_is_a_commands_where_it_reads_so(
    name: str, checkout: Path
) -> None:
    text, prompt = COMMANDS[name]
    put(checkout, name, text)
    (checkout.parent / ".project_root").write_text(str(checkout))
    assert not claims(gemini([{"text": prompt}], "", checkout))


@pytest.mark.parametrize(("begins", "expanded"), [("please", True), ("always", False)])
def test_files_that_are_dear_to_compare_hold_up_no_prompt(begins: str, expanded: bool, checkout: Path) -> None:
    """Sixteen alike take more than half a second for a prompt; where not all of them are compared, any may be it."""
    commands = checkout / ".opencode" / "command"
    commands.mkdir(parents=True, exist_ok=True)
    for number in range(16):
        (commands / f"{number}.md").write_text((f"{begins}$1now " * 6_000)[:65_000])
    assert is_expanded("please mend the exporter of the ledger", str(checkout), "opencode") is expanded


MOST_S, MOST_MEMORY = 0.5, 1 << 30
"""Of a processor and of memory for one prompt. At twice the size the first two took four times as long, and seconds."""
DEAR = {
    # `tomllib` looks each name of a dotted key up from the outermost.
    "a key of many names": ({".gemini/commands/x.toml": "a." * 10_000 + "a = 1\n"}, "fix the dates, please"),
    # Each piece that is nowhere is looked for in the whole prompt.
    "many pieces that are nowhere": (
        {".claude/commands/x.md": "$1" + "aab$1" * 20_000}, "why this: " + "a" * 20_000
    ),
    "many pieces that all differ": (
        {".claude/commands/x.md": "".join(f"$1aab{number}" for number in range(20_000))}, "why this: " + "a" * 20_000
    ),
    "settings that name large files again and again": (
        {f"{'d/' * deep}{name}.json": f'"{{file:{"../" * (deep + name.count("/"))}large.txt}}",' * 60
         for deep in range(9) for name in ("opencode", ".opencode/opencode", ".claude/scheduled_tasks")}
        | {"large.txt": "é" * 250_000},
        "fix the dates, please",
    ),
    # Where what is left without its variables was gone over again, each level took the whole file.
    "variables within variables": (
        {"opencode.json": f'{{"a": "{"{en" * 2_000 + "{env:" + "v:}" * 2_000}"}}'}, "fix the dates, please"
    ),
    "a folder of many files": (
        {f".claude/commands/{number}.txt": "" for number in range(4_000)}, "fix the dates, please"
    ),
}  # fmt: skip


@contextmanager
def within_memory() -> Iterator[None]:
    """What asks for more than `MOST_MEMORY` meanwhile gets none."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as said:
        has = int(said.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (has + MOST_MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says how much memory a process has")
@pytest.mark.parametrize("made", DEAR)
def test_whatever_a_clone_holds_a_prompt_costs_no_more_than_its_share(made: str, checkout: Path) -> None:
    """The door parses one delivery after the other, for all sessions of the machine."""
    files, prompt = DEAR[made]
    for name, text in files.items():
        put(checkout, name, text)
    (within := checkout / ("d/" * 8)).mkdir(parents=True, exist_ok=True)
    with within_memory():
        for look in (
            lambda: is_expanded(prompt, str(within), "claude-code"),
            lambda: hooked("claude-code", "s", prompt, within),
        ):
            began = time.process_time()
            look()
            assert time.process_time() - began < MOST_S


def test_no_number_of_files_and_no_link_hides_a_command(checkout: Path) -> None:
    put(checkout, "elsewhere/dates.md", RULE)
    (checkout / ".opencode").mkdir()
    (checkout / ".opencode" / "command").symlink_to(checkout / "elsewhere", target_is_directory=True)
    assert is_expanded(RULE, str(checkout), "opencode")
    for name in ("round", "again"):
        (checkout / "elsewhere" / name).symlink_to(checkout / "elsewhere", target_is_directory=True)
    assert is_expanded("please fix the total", str(checkout), "opencode")


@pytest.mark.parametrize("gone", [False, True])
def test_a_prompt_that_is_older_than_a_change_of_the_commands_is_no_word_of_the_users(
    gone: bool, checkout: Path
) -> None:
    put(checkout, ".opencode/command/dates.md", RULE)
    put(checkout, ".opencode/command/dates.md", "Look at $ARGUMENTS.")
    if gone:
        shutil.rmtree(checkout / ".opencode" / "command")
    changed = (checkout / ".opencode").stat().st_ctime_ns // 1_000
    assert is_expanded(RULE, str(checkout), "opencode", Micros(changed - 1))
    assert not is_expanded(RULE, str(checkout), "opencode", Micros(changed + 60_000_000))


@pytest.mark.parametrize("prompt", ["", "/dates", "please fix the total", "use"])
def test_other_prompts_are_no_commands(prompt: str, checkout: Path) -> None:
    put(checkout, ".opencode/command/dates.md", "Use $ARGUMENTS for the dates of this shop.")
    put(checkout, ".opencode/command/all.md", "$ARGUMENTS")
    put(checkout, ".opencode/command/bad.toml", "prompt = [")
    put(checkout, ".gemini/commands/total.toml", 'description = "Please fix"\nprompt = "Mend {{args}} now."')
    put(checkout, ".claude/skills/shop/pyproject.toml", '[project]\nname = "please"\ndependencies = ["please"]')
    put(checkout, "opencode.json", '{"$schema": "https://opencode.ai/config.json", "theme": "x"}')
    assert not is_expanded(prompt, str(checkout), "opencode")
    assert not is_expanded(prompt, "relative", "opencode")


@pytest.mark.skipif(shutil.which("node") is None, reason="the plugin runs in Node")
def test_opencodes_plugin_says_which_prompt_is_a_commands(tmp_path: Path) -> None:
    sent = told_by_the_plugin(
        tmp_path,
        """await hooks["command.execute.before"]({ command: "x", sessionID: "s", arguments: "" }, { parts: [] });
await say("s", "of a file");
await say("s", "typed");
""",
    )
    assert [(each["prompt"], each["from_command"]) for each in sent] == [("of a file", True), ("typed", False)]


@pytest.mark.skipif(shutil.which("node") is None, reason="the plugin runs in Node")
def test_opencodes_plugin_says_which_prompt_a_program_asked(tmp_path: Path) -> None:
    sent = told_by_the_plugin(
        tmp_path,
        """const begin = (id, permission) =>
  hooks.event({ event: { type: "session.created", properties: { info: { id, permission } } } });
await begin("of a program", [{ permission: "question", action: "deny", pattern: "*" }]);
await begin("of a person", [{ permission: "bash", action: "deny", pattern: "*" }]);
await say("of a program", "push");
await say("of a person", "push");
""",
    )
    asked = [each for each in sent if each["hook_event_name"] == "UserPromptSubmit"]
    found = [
        parse_hook(json.dumps(each).encode(), agent="opencode", delivery_id="d", received_at=Micros(1))
        for each in asked
    ]
    assert [[event.actor for event in each.events] for each in found] == [["agent"], ["user"]]


@pytest.mark.skipif(shutil.which("node") is None, reason="the plugin runs in Node")
def test_opencodes_plugin_asks_who_speaks_in_a_session_of_before_a_restart(tmp_path: Path) -> None:
    sent = told_by_the_plugin(
        tmp_path,
        """for (const id of ["a subagent's", "a program's", "a person's", "unknown"]) {
  await hooks["tool.execute.after"]({ tool: "edit", sessionID: id, callID: "c", args: {} }, { output: "done" });
  await say(id, "push");
}
await hooks.event({ event: { type: "session.idle", properties: { sessionID: "a subagent's" } } });
""",
        client="""{ session: { get: async ({ path: { id } }) => ({ data: {
  "a subagent's": { id, parentID: "main" },
  "a program's": { id, permission: [{ permission: "question", action: "deny", pattern: "*" }] },
  "a person's": { id },
}[id] }) } }""",
    )
    for hook in ("UserPromptSubmit", "PostToolUse"):
        of_it = [each for each in sent if each["hook_event_name"] == hook and each["session_id"] != "a subagent's"]
        by = {each["session_id"]: each.get("memctl_entrypoint", "a person") for each in of_it}
        assert by == {"a program's": "opencode-run", "a person's": "a person", "unknown": "opencode-run"}


def told_by_the_plugin(tmp_path: Path, script: str, client: str = "{}") -> list[dict[str, Any]]:
    """What the plugin hands to the hook while a script runs."""
    record = [sys.executable, "-c", f"import sys; open({str(tmp_path / 'sent')!r}, 'a').write(sys.stdin.read())"]
    plugin = OPENCODE_PLUGIN.read_text().replace("/* command */ []", json.dumps(record))
    (tmp_path / "memctl.mjs").write_text(plugin)
    (tmp_path / "run.mjs").write_text(
        f"""import {{ Memctl }} from "./memctl.mjs";
const hooks = await Memctl({{ client: {client}, directory: "/w" }});
const say = (sessionID, text) => hooks["chat.message"]({{ sessionID }}, {{ parts: [{{ type: "text", text }}] }});
{script}"""
    )
    subprocess.run(["node", str(tmp_path / "run.mjs")], check=True, timeout=60)
    return [json.loads(line) for line in (tmp_path / "sent").read_text().replace("}{", "}\n{").splitlines()]


@pytest.mark.parametrize("location", ["/w/\0x", "/w/\ud800", "relative", ""])
def test_where_no_file_can_lie_there_is_no_command(location: str) -> None:
    assert not is_expanded(RULE, location, "opencode")
