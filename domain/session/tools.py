"""The tools of coding agents: what they do, their main argument, the files they touch, and what they change."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from memctl.domain.events.facts import EXCERPT
from memctl.domain.events.observations import Hunk
from memctl.domain.shell.commands import substitutions_of, written_by
from memctl.domain.support import patterns
from memctl.domain.support.location import is_absolute, joined, normalise
from memctl.domain.support.remembered import remembered

_FAMILIES = {
    "run": "bash shell exec exec_command local_shell run_shell_command powershell run_terminal_cmd run_command "
    "terminal "
    "write_stdin execute_command read_bash write_bash stop_bash killshell bashoutput unified_exec container.exec",
    "edit": "edit write multiedit notebookedit apply_patch str_replace create str_replace_editor write_file edit_file "
    "replace create_file insert search_replace str_replace_based_edit_tool delete_file",
    "read": "read view read_file notebookread read_many_files view_image cat open_file",
    "search": "grep glob ls rg search find_file list_directory search_file_content codebase_search list_dir "
    "file_search "
    "grep_search toolsearch tool_search",
    "plan": "todowrite todoread taskcreate taskupdate tasklist taskget update_plan exitplanmode enterplanmode "
    "askuserquestion write_todos",
    "delegate": "task agent spawn_agent send_input wait_agent skill sendmessage taskoutput taskstop slashcommand",
    "web": "websearch webfetch web_search web_fetch google_web_search fetch browser_navigate",
}
_FAMILY = {name: family for family, names in _FAMILIES.items() for name in names.split()}
_MAIN = (
    "command", "cmd", "file_path", "filePath", "notebook_path", "pattern", "query", "url", "path", "description",
    "prompt", "subject", "skill", "input", "chars",
)  # fmt: skip
_DIRECTORIES = ("workdir", "dir_path", "directory", "cwd")
_PATHS = ("file_path", "filePath", "path", "notebook_path", "filename", "absolute_path", "target_file")


class Change(NamedTuple):
    """One file changed by a tool: lines added and removed, and excerpts of before and after."""

    path: str
    added: int = 0
    removed: int = 0
    created: bool = False
    before: str = ""
    after: str = ""


@remembered(1024)
def family_of(tool: str) -> str:
    """What a tool does: run, edit, read, search, plan, delegate, web or other."""
    family = _FAMILY.get(tool.lower())
    if family:
        return family
    name = tool.rpartition("__")[2].lower()
    for part, family in (("search", "search"), ("fetch", "web"), ("read", "read"), ("get", "read"), ("list", "search")):
        if name.startswith(part):
            return family
    return _FAMILY.get(name, "other")


_ASKED_FOR = frozenset(("run", "edit", "read", "search", "plan"))


def is_clients_own(tool: str) -> bool:
    """Whether a tool of that name is a client's own, and brings no words of a page or of another agent."""
    return _FAMILY.get(tool.lower()) in _ASKED_FOR


def command_of(tool_input: Mapping[str, Any]) -> str:
    """The command line that a tool of family `run` was given."""
    for name in ("command", "cmd", "script"):
        given = tool_input.get(name)
        if isinstance(given, str):
            return given
        if isinstance(given, list) and all(isinstance(word, str) for word in given):
            # An argument vector; a shell's own `-c` script says it better.
            return given[2] if len(given) == 3 and given[1] in ("-c", "-lc") else " ".join(given)
    return ""


def directory_of(tool_input: Mapping[str, Any], location: str) -> str:
    """The directory that a tool of family `run`, used by a session at a location, was asked to begin its command in.

    It is the location where none was named, and empty where one was named relative to an unknown location.
    """
    for name in _DIRECTORIES:
        given = tool_input.get(name)
        if isinstance(given, str) and (path := normalise(given)):
            return joined(location, path) if location or is_absolute(path) else ""
    return location


def summary_of(tool_input: Mapping[str, Any]) -> str:
    """The main argument of a use, on one line, at most 300 characters."""
    if not tool_input:
        return ""
    for name in _MAIN:
        given = tool_input.get(name)
        if isinstance(given, str) and given.strip():
            return _line(given)
    command = command_of(tool_input)
    if command:
        return _line(command)
    return _line(
        ", ".join(f"{name}={value}" for name, value in tool_input.items() if isinstance(value, (str, int)))[:600]
    )


def _line(text: str) -> str:
    return " ".join(text[:900].split())[:300]


def files_of(family: str, tool_input: Mapping[str, Any], file: str = "") -> tuple[str, ...]:
    """The files that a use names."""
    if file:
        return (slashed(file),)
    if family not in ("read", "edit"):
        return ()
    for name in _PATHS:
        given = tool_input.get(name)
        if isinstance(given, str) and given:
            return (slashed(given),)
    patch = patch_text(tool_input)
    return tuple(dict.fromkeys(slashed(path) for _, path in _FILES_OF_PATCH.findall(patch)))[:20] if patch else ()


def slashed(path: str) -> str:
    """A path with slashes, as files are compared."""
    return path.strip().replace("\\", "/")


_FILES_OF_PATCH = patterns.compile(r"^\*\*\* (Add|Update|Delete) File: (.+?)\s*$", patterns.M)
_PATCH = patterns.compile(r"\*\*\* Begin Patch\n(?s:.*?)(?:\*\*\* End Patch|\Z)")


def patch_text(tool_input: Mapping[str, Any]) -> str:
    """The patch in the form of `apply_patch` that a use carries, be it in a command; empty where there is none."""
    for name in ("input", "patch", "command", "cmd", "patchText"):
        given = tool_input.get(name)
        if isinstance(given, list):
            given = "\n".join(word for word in given if isinstance(word, str))
        if isinstance(given, str) and "*** Begin Patch" in given:
            found = _PATCH.search(given)
            return found[0] if found else ""
    return ""


def patch_parts(text: str) -> dict[str, str]:
    """What a patch in the form of `apply_patch` does to each of its files, by path: the first 50."""
    starts = list(_FILES_OF_PATCH.finditer(text)) if text else []
    ends = [*(start.start() for start in starts[1:]), len(text)]
    return {slashed(start[2]): text[start.end() : end] for start, end in zip(starts[:50], ends, strict=False)}


def changes_of_use(
    family: str, tool: str, tool_input: Mapping[str, Any], patch: Sequence[Hunk], file: str
) -> list[Change]:
    """The files that a successful use changed."""
    if family == "edit":
        text = patch_text(tool_input)
        if text:
            return _of_patch(text)
        return _of_edit(tool, tool_input, patch, file)
    if family == "run":
        text = patch_text(tool_input)
        if text:
            return _of_patch(text)
        command = command_of(tool_input)
        edited = substitutions_of(command)
        sides = {path: edited.get(path, ("", "")) for path in (*written_by(command), *edited)}
        return [Change(slashed(path), before=old[:EXCERPT], after=new[:EXCERPT]) for path, (old, new) in sides.items()]
    return []


def _of_edit(tool: str, tool_input: Mapping[str, Any], patch: Sequence[Hunk], file: str) -> list[Change]:
    path = next(iter(files_of("edit", tool_input, file)), "")
    if not path or (tool_input.get("command") in ("view", "undo_edit")):
        return []
    if patch:
        return [_of_lines(path, [line for hunk in patch for line in hunk.lines])]
    edits = tool_input.get("edits")
    pairs = [edit for edit in edits if isinstance(edit, dict)] if isinstance(edits, list) else [tool_input]
    before = "\n".join(_text(pair, "old_string", "old_str", "oldString") for pair in pairs)
    after = "\n".join(
        _text(pair, "new_string", "new_str", "newString", "content", "file_text", "new_source", "insert_text")
        for pair in pairs
    )
    added, removed = counted(before, after)
    created = not before and tool.lower() in ("write", "create", "write_file", "create_file")
    return [Change(path, added, removed, created, *_excerpts(before, after))]


def _of_lines(path: str, lines: Sequence[str], *, created: bool = False) -> Change:
    """The change that the lines of a patch say, of which some begin with `+` or `-`."""
    minus, plus = ([line[1:] for line in lines if line[:1] == sign] for sign in "-+")
    return Change(path, len(plus), len(minus), created, *_excerpts("\n".join(minus), "\n".join(plus)))


def _excerpts(before: str, after: str) -> tuple[str, str]:
    """The beginning of both sides of an edit; of long ones from the line before the first that differs."""
    if max(len(before), len(after)) > EXCERPT and before and after:
        old, new = before.split("\n"), after.split("\n")
        start = next((at for at, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), 0)
        before, after = ("\n".join(side[max(start - 1, 0) :]) for side in (old, new))
    return before[:EXCERPT], after[:EXCERPT]


def _text(given: Mapping[str, Any], *names: str) -> str:
    return next((value for name in names if isinstance(value := given.get(name), str)), "")


def counted(before: str, after: str) -> tuple[int, int]:
    """Lines added and removed between two texts: those between the common beginning and the common end."""
    old, new = before.splitlines(), after.splitlines()
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return len(new) - start - end, len(old) - start - end


def _of_patch(text: str) -> list[Change]:
    found: list[Change] = []
    starts = list(_FILES_OF_PATCH.finditer(text))
    for index, start in enumerate(starts[:50]):
        end = starts[index + 1].start() if index + 1 < len(starts) else len(text)
        found.append(_of_lines(slashed(start[2]), text[start.end() : end].split("\n"), created=start[1] == "Add"))
    return found


_STATUS = {"in_progress": "in_progress", "completed": "completed", "done": "completed"}
_NUMBERED = patterns.compile(r"#(\w+)")


class StepList:
    """The agent's list of steps, through tools that write it whole and tools that change one step."""

    def __init__(self) -> None:
        self._steps: dict[str, tuple[str, str]] = {}

    def after(self, tool: str, tool_input: Mapping[str, Any], answer: str) -> tuple[tuple[str, str], ...] | None:
        """The list as (status, text) after a use; None where the use left it as it was."""
        for name in ("todos", "plan", "items"):
            steps = tool_input.get(name)
            if isinstance(steps, list):
                self._steps = {}
                for index, step in enumerate(steps[:50]):
                    if isinstance(step, dict):
                        self._set(str(index), step, _text(step, "content", "step", "text", "title", "description"))
                return tuple(self._steps.values())
        if tool.lower() == "taskcreate":
            # The client answers "Task #3 created successfully: …".
            named = _NUMBERED.search(answer)
            self._set(named[1] if named else str(len(self._steps) + 1), tool_input, _text(tool_input, "subject"))
            return tuple(self._steps.values())
        if tool.lower() == "taskupdate":
            number = str(tool_input.get("taskId", ""))
            if tool_input.get("status") == "deleted":
                self._steps.pop(number, None)
            elif number in self._steps:
                status, text = self._steps[number]
                self._set(number, {"status": tool_input.get("status", status)}, _text(tool_input, "subject") or text)
            return tuple(self._steps.values())
        return None

    def _set(self, number: str, given: Mapping[str, Any], text: str) -> None:
        if text and (number in self._steps or len(self._steps) < 50):
            self._steps[number] = (_STATUS.get(str(given.get("status", "")), "pending"), _line(text))


_SYMBOL = patterns.compile(
    r"^[ \t]*(?:export |default |public |private |protected |static |async |pub(?:\([a-z]+\))? |final |abstract )*"
    r"(?:def|func(?: \([^)]*\))?|function\*?|class|interface|struct|enum|trait|fn|type|impl|module|const(?= \w+ = "
    r"(?:async )?\())\s+"
    r"([A-Za-z_]\w{2,})(?=\W)",  # at the end of an excerpt a name may be cut
    patterns.M,
)
_PROSE = (".md", ".mdx", ".markdown", ".rst", ".adoc", ".txt", ".log")


def symbols_in(path: str, text: str) -> tuple[str, ...]:
    """Names of functions and types that an excerpt of a file defines; none of prose, where these words mean nothing."""
    if path.lower().endswith(_PROSE):
        return ()
    return tuple(dict.fromkeys(_SYMBOL.findall(text)))[:20]
