"""Errors and what fixed them: recall against episodes that a script labelled, and false alarms on good runs.

The labels (`error_fix_episodes.json`) are a guide: a failing command, edits, the same command passing. Precision is
read by people, on findings that `python tests/eval/findings.py` draws.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta

from figures import Figure, Missing, share
from sessions import EPOCH, Data, unseen

from memctl.domain.events.event import Event
from memctl.domain.events.facts import ErrorOccurred, ErrorResolved
from memctl.domain.events.observations import ToolCalled, ToolFailed, ToolReturned
from memctl.domain.failures.signatures import errors_in, hides_exit, is_noise
from memctl.domain.session.tools import command_of, family_of

SAME_MOMENT_US = 2_000


def measure(data: Data) -> Iterator[Figure]:
    labelled = data.file("error_fix_episodes.json")
    if labelled is None or not data.has_sessions:
        raise Missing("there are no labelled episodes (error_fix_episodes.json) with their sessions")
    labels = json.loads(labelled.read_text())
    found = _found(data)
    recognised = resolved = noise = 0
    for label in labels:
        noise += is_noise(label["error"].removeprefix("Error: "))
        errors = found[_moment(label["ts"])] or found[_moment(label["ts"]) + 1]
        errors = [e for e in errors if e[0].command[:50] == label["command"][:50]] or errors
        recognised += bool(errors)
        resolved += any(fix for _, fix in errors)
    yield Figure("labelled errors that are recognised", share(recognised, len(labels)), len(labels))
    yield Figure("labelled errors whose fix is found", share(resolved, len(labels)), len(labels), 0.90)
    yield Figure("  of those that are no refusal or outage", share(resolved, len(labels) - noise), len(labels) - noise)
    yield _same_command("the same command failed, passed behind an edit; fix found", data)
    with unseen(data) as other:
        if other is not None:
            yield _same_command("  of sessions that no rule was made on", other)
    runs, hidden, alarms = _good_runs(data)
    yield Figure("exit code 0 that a pipe may hide, with error", share(hidden, runs), runs, 0.02, at_most=True)
    yield Figure("other exit code 0, with error", share(alarms, runs), runs, 0.002, at_most=True)


def _moment(ts: str) -> int:
    at = datetime.fromisoformat(ts.replace("Z", "+00:00"))
    return (at - EPOCH) // timedelta(microseconds=1) // SAME_MOMENT_US


def _found(data: Data) -> dict[int, list[tuple[ErrorOccurred, ErrorResolved | None]]]:
    """Every error with its fix, by moment."""
    found: dict[int, list[tuple[ErrorOccurred, ErrorResolved | None]]] = defaultdict(list)
    for facts in data.facts.values():
        fixes = {fact.error: fact for fact in facts if isinstance(fact, ErrorResolved)}
        for fact in facts:
            if isinstance(fact, ErrorOccurred):
                found[fact.occurred_at // SAME_MOMENT_US].append((fact, fixes.get(fact.id)))
    return found


def _same_command(name: str, data: Data) -> Figure:
    """Of the failures whose command, up to its first pipe or redirection, passes later in the session, with a file
    edited in between, how many have a fix. A refusal is no failure."""
    found = _found(data)
    at = [moment for events in data.streams.values() for moment in _passed_behind_an_edit(events)]
    fixed = sum(any(fix for _, fix in found[moment]) for moment in at)
    return Figure(name, share(fixed, len(at)), len(at), 0.93)


def _passed_behind_an_edit(events: list[Event]) -> Iterator[int]:
    """Moments of such failures."""
    calls = {e.payload.call: e.payload for e in events if isinstance(e.payload, ToolCalled)}
    failed: dict[str, tuple[int, bool]] = {}
    for event in events:
        back = event.payload
        if not isinstance(back, (ToolFailed, ToolReturned)) or (call := calls.get(back.call)) is None:
            continue
        family, command = family_of(call.tool), command_of(call.input).partition("2>")[0].partition("|")[0].strip()
        if family == "edit" and isinstance(back, ToolReturned):
            failed = {each: (moment, True) for each, (moment, _) in failed.items()}
        elif family != "run" or not command:
            continue
        elif isinstance(back, ToolFailed):
            if not is_noise(back.text):
                failed[command] = (event.occurred_at // SAME_MOMENT_US, False)
        elif not errors_in(back.text, command, failed=False):
            moment, edited = failed.pop(command, (0, False))
            if edited:
                yield moment


def _good_runs(data: Data) -> tuple[int, int, int]:
    """Commands that went well; those of them in which errors are found because their exit code may be a filter's; and
    those in which errors would be found though it is their own (memctl asks only of the former)."""
    runs = hidden = alarms = 0
    for events in data.streams.values():
        calls = {e.payload.call: e.payload for e in events if isinstance(e.payload, ToolCalled)}
        for event in events:
            back = event.payload
            call = calls.get(back.call) if isinstance(back, ToolReturned) else None
            if not isinstance(back, ToolReturned) or call is None or family_of(call.tool) != "run":
                continue
            runs += 1
            command = command_of(call.input)
            if command and errors_in(back.text, command, failed=False):
                if hides_exit(command):
                    hidden += 1
                else:
                    alarms += 1
    return runs, hidden, alarms
