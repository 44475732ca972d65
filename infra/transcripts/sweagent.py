"""SWE-agent trajectories: one JSON document `.traj`, `{trajectory: [step], history: [message], info, …}`.

A step is a thought, an action and what was observed. A run has no id and no times: it is named by a digest of its
problem and its first step, whose execution time no other run repeats. Of the history only the problem is kept, cut out
of the prompt's template, which is the operator's word on how to work and not what is to be done; the rest repeats the
steps, or is a demonstration.
"""

import hashlib
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

from memctl.domain.events.event import Micros, NewEvent
from memctl.domain.events.observations import Agent, SessionEnded, SessionStarted
from memctl.domain.support import patterns
from memctl.domain.support.location import normalise
from memctl.infra.transcripts.fields import integer, items, joined, kind, mapping, string
from memctl.infra.transcripts.formats import Line, Session, Unreadable, decoded, decoded_within

_PROBLEM = (("<pr_description>", "</pr_description>"), ("\nISSUE:\n", "\nINSTRUCTIONS:"))
"""What stands around the problem in the prompts of SWE-agent's own configurations."""

_TOOLS = frozenset(
    ("create", "edit", "find_file", "goto", "insert", "open", "scroll_down", "scroll_up", "search_dir", "search_file",
     "str_replace_editor", "submit", "view_image")
)  # fmt: skip
"""Commands of SWE-agent's own; any other action is the shell's."""

_REFUSED = patterns.compile(
    r"Your (?:proposed )?edit (?:has introduced|command|was not applied)|No edit was made|"
    r"No replacement was performed|Usage: |Your command .* blocked"
)
_PROMPT = patterns.compile(r"\(Open file: (?P<file>[^\n]*)\)\n\(Current directory: (?P<folder>[^\n]*)\)\nbash-\$\s*\Z")
"""Where the shell stands, at the end of an observation of the history."""

LONGEST_SPLIT = 32_000
"""Characters of an action that is split into words: `shlex` takes four times as long for twice the text. A longer one
is kept as it is."""

_LINES = patterns.compile(r"edit \d+:\d+\n")


class SweAgent:
    """The format's reader. It keeps the run's name and where its shell stood last."""

    agent: Agent = "swe-agent"

    def __init__(self, path: Path | None = None) -> None:
        self._session = Session("swe-agent")
        self._problem = ""

    def split(self, data: bytes) -> list[Any]:
        run = decoded(data)
        history = [mapping(message) for message in items(run.get("history"))]
        steps = items(run.get("trajectory")) or _steps_of(history)
        self._problem = next((text for message in history if (text := _problem_in(message))), "")
        info = mapping(run.get("info"))
        self._session.agent_version = string(info.get("swe_agent_version"))
        if steps:
            first = mapping(steps[0])
            named = [self._problem, *(first.get(name) for name in ("action", "observation", "execution_time"))]
            name = "\0".join(map(repr, named)).encode("utf-8", "surrogatepass")
            self._session.id = f"run-{hashlib.sha256(name).hexdigest()[:24]}"
        end = [{"end": string(info.get("exit_status"))}] if info.get("exit_status") else []
        return [{"start": history}, *({"step": step} for step in steps), *end]

    def read(self, record: Any, place: str) -> list[NewEvent] | str:
        if not self._session.id:
            return kind("run without steps")
        line = Line(self._session, "end" if "end" in record else place, Micros(0))
        if "start" in record:
            line.add(SessionStarted(source="startup", **line.fields))
            if self._problem:
                line.prompted(self._problem, block=1)
        elif "end" in record:
            line.add(SessionEnded(reason=record["end"], **line.fields))
        else:
            self._step(record["step"], line)
        return line.events or kind("step", "empty")

    def _step(self, step: Any, line: Line) -> None:
        if not isinstance(step, dict):
            raise Unreadable(f"not an object but {type(step).__name__}")
        state = _state(step.get("state"))
        self._session.location = self._session.location or normalise(string(state.get("working_dir")))
        line.said((string(step.get("thought")) or string(step.get("response"))).strip())
        action = string(step.get("action")).strip()
        if not action:
            return
        tool, given = _call(action)
        open_file = string(state.get("open_file"))
        call, answer = f"{line.fields['line']}.1", joined(step.get("observation"))
        seconds = step.get("execution_time")
        line.called(tool, call, given, block=1)
        line.answered(
            failed=_REFUSED.match(answer),
            text=answer.replace("\r\n", "\n"),
            tool=tool,
            call=call,
            duration_ms=integer(seconds * 1000) if isinstance(seconds, (int, float)) else None,
            file=open_file if tool == "edit" and open_file != "n/a" else "",
            block=2,
        )


def _problem_in(message: dict[str, Any]) -> str:
    if message.get("role") != "user" or message.get("is_demo") is True:
        return ""
    text = joined(message.get("content")).replace("\r\n", "\n")
    for opening, closing in _PROBLEM:
        start = text.find(opening)
        end = text.find(closing, start + len(opening))
        if 0 <= start < end:
            return text[start + len(opening) : end].strip()
    return ""


def _steps_of(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The steps of a run that only its history shows: an action, and the message behind it."""
    found = []
    for message, answer in pairwise([*history, {}]):
        if message.get("role") == "assistant" and message.get("is_demo") is not True:
            observation, state = "", {}
            if answer.get("role") != "assistant":
                observation = joined(answer.get("content")).replace("\r\n", "\n")
            if stands := _PROMPT.match(observation, max(observation.rfind("(Open file: "), 0)):
                observation = observation[: stands.start()].rstrip()
                state = {"open_file": stands["file"], "working_dir": stands["folder"]}
            found.append({"state": state, **message, "observation": observation})
    return found


def _state(state: Any) -> dict[str, Any]:
    """The shell's state: an object, in older files JSON of one."""
    if isinstance(state, str):
        try:
            state = decoded_within(state)
        except ValueError:
            return {}
    return mapping(state)


def _call(action: str) -> tuple[str, dict[str, Any]]:
    """The tool that an action's first word names, else a shell command, and its arguments as far as it gives them."""
    tool = action.split(maxsplit=1)[0]
    if tool not in _TOOLS:
        return "bash", {"command": action}
    given: dict[str, Any] = {"input": action}
    if edit := _LINES.match(action):
        return tool, given | {"new_string": action[edit.end() :].removesuffix("end_of_edit").removesuffix("\n")}
    try:
        words = shlex.split(action)[1:] if len(action) <= LONGEST_SPLIT else []
    except ValueError:
        return tool, given
    if tool == "str_replace_editor" and len(words) >= 2:
        named = {"command": words[0], "path": words[1]}
        named |= {flag[2:]: value for flag, value in pairwise(words[2:]) if flag.startswith("--")}
        return tool, named
    if tool == "edit" and len(words) >= 2:
        return tool, given | {"old_string": words[0], "new_string": words[1]}
    if tool in ("open", "create") and words:
        return tool, {"file_path": words[0]}
    return tool, given
