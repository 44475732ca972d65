"""Every shell command of a set of sessions in order of time, and what memory would have said before it ran.

Memory is what was recorded before that moment, by other sessions and this one. A failure counts as met before by the
words of the command and of its error alone, as tools/opportunity.py of the published data counts it; no rule of memctl
takes part in that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from memctl.domain.events.event import Event
from memctl.domain.events.facts import CommandTried, Fact
from memctl.domain.events.observations import ToolCalled, ToolFailed, ToolReturned
from memctl.domain.failures.known_commands import keys_of
from memctl.domain.session.tools import command_of, directory_of
from memctl.domain.support.location import project_name
from memctl.projections.known_commands import KnownCommand, known_commands, row_id, warning

NEXT = 7
"""Commands after a failure among which the form that works is looked for."""


class Ran(NamedTuple):
    """A command that came back. `failed` also where a pipe hid it and the output holds what memory warned of. `met`: it
    failed as one of an earlier session had; `form`: that one showed a form that works; `wrong`: by its words the call
    itself was wrong. `said` is the warning that memory would have given."""

    project: str
    stream: str
    at: int
    command: str
    failed: bool
    output: str
    met: bool
    form: bool
    wrong: bool
    said: str


class _Command(NamedTuple):
    at: int
    stream: str
    location: str
    began: str
    command: str
    failed: bool
    output: str


def commands_of(stream: str, events: Iterable[Event]) -> list[_Command]:
    """The shell commands of a session that came back, in order of time, refusals left out."""
    calls: dict[str, tuple[int, str, str, str]] = {}
    found = []
    for event in events:
        match event.payload:
            case ToolCalled() as called:
                command = command_of(called.input)
                if command:
                    began = directory_of(called.input, event.location)
                    calls[called.call] = int(event.occurred_at), event.location, began, command
            case (ToolReturned() | ToolFailed()) as ended if ended.call in calls:
                at, location, began, command = calls.pop(ended.call)
                text = ended.text
                if "rejected" in text[:200] or "Sibling" in text[:100]:
                    continue
                found.append(_Command(at, stream, location, began, command, isinstance(ended, ToolFailed), text))
    return sorted(found, key=lambda each: each.at)


def replay(streams: dict[str, list[Event]], facts: dict[str, list[Fact]]) -> Iterator[Ran]:
    """Each command of all sessions, with what memory held then."""
    commands = [each for stream, events in streams.items() for each in commands_of(stream, events)]
    began = {stream: min(int(event.occurred_at) for event in events) for stream, events in streams.items() if events}
    before = _met_before(commands, began)
    tried = [fact for of_one in facts.values() for fact in of_one if isinstance(fact, CommandTried)]
    steps: list[tuple[int, int, _Command | CommandTried]] = [(each.at, 0, each) for each in commands]
    steps += [(int(fact.occurred_at), 1, fact) for fact in tried]
    rows: dict[str, KnownCommand] = {}
    heard: set[tuple[str, str]] = set()
    for _, _, step in sorted(steps, key=lambda step: step[:2]):
        if isinstance(step, CommandTried):
            here = project_name(step.location)
            for key in step.keys:
                at = row_id(here, key)
                row = known_commands(rows.get(at), step)
                assert row is not None
                rows[at] = row
            continue
        here = project_name(step.location)
        known = [(at, rows[at]) for key in keys_of(step.command, step.began) if (at := row_id(here, key)) in rows]
        found = warning(known, step.stream, command=step.command)
        said, failed = "", step.failed
        if found is not None and (step.stream, found.row.subject) not in heard:
            heard.add((step.stream, found.row.subject))
            said = f"{found.odds:.2f} {found.failed.reason}: {found.failed.message} | {found.works.command}"
            failed = failed or found.failed.message in " ".join(step.output.split())
        met, form = before[id(step)]
        wrong = failed and _WRONG_CALL.search(_first_error(step.output)) is not None
        yield Ran(here, step.stream, step.at, step.command, failed, step.output, met, form, wrong, said)


def _met_before(commands: list[_Command], began: dict[str, int]) -> dict[int, tuple[bool, bool]]:
    """Of each command, whether it failed as it had in an earlier session, and whether a form that works was seen."""
    sessions: dict[str, dict[str, list[_Command]]] = {}
    for each in commands:
        sessions.setdefault(project_name(each.location), {}).setdefault(each.stream, []).append(each)
    found: dict[int, tuple[bool, bool]] = {}
    for of_project in sessions.values():
        failed: dict[tuple[str, str], bool] = {}
        for stream in sorted(of_project, key=lambda stream: began[stream]):
            new: dict[tuple[str, str], bool] = {}
            ran = of_project[stream]
            for number, each in enumerate(ran):
                key = _plain(each.command), _first_error(each.output) if each.failed else ""
                met = each.failed and bool(key[1]) and key in failed
                found[id(each)] = met, met and failed[key]
                if each.failed and key[1]:
                    program = (key[0].split() or [""])[0]
                    later = [_plain(other.command) for other in ran[number + 1 : number + 1 + NEXT] if not other.failed]
                    new[key] = any(form != key[0] and program in form for form in later)
            failed |= new
    return found


def _plain(command: str) -> str:
    command = re.sub(r"^\s*cd\s+\S+\s*&&\s*", "", command.strip())
    command = re.sub(r"\s*(2>&1|\|\s*(head|tail|grep)\b.*)", "", command)
    command = re.sub(r"\"[^\"]*\"|'[^']*'", "S", command)
    command = re.sub(r"/[\w./-]{6,}", "P", command)
    return re.sub(r"\b[0-9a-f]{7,}\b|\d+", "N", command)[:160].strip()


def _first_error(output: str) -> str:
    for line in output.split("\n"):
        line = line.strip()
        if line and not line.startswith("Exit code") and _ERROR.search(line):
            return re.sub(r"\d+", "N", re.sub(r"/[\w./-]{6,}", "P", line))[:140]
    return ""


_WRONG_CALL = re.compile(
    r"unrecognized|unknown (?:option|flag|command|subcommand|argument|shorthand)|command not found|no such"
    r"|missing script|not a git repository|does not exist|unexpected argument|invalid option|no rule to make",
    re.IGNORECASE,
)
_ERROR = re.compile(
    r"error|fail|not found|cannot|no such|denied|fatal|unknown|invalid|missing|undefined", re.IGNORECASE
)
