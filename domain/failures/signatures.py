"""Errors in the output of tools, and the signature by which the same error is known again in another run."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterable
from itertools import chain, islice, pairwise
from string import ascii_lowercase

import msgspec

from memctl.domain.failures.shapes import ERROR_WORDS, PLAIN, STRONG, WRAPPER, FoundError, Shape
from memctl.domain.failures.templates import plain, template_of
from memctl.domain.failures.tool_errors import SHAPES
from memctl.domain.shell.commands import head_of, is_reading, only_reads, parts_of
from memctl.domain.shell.directories import ENTERING
from memctl.domain.shell.programs import words_of
from memctl.domain.support import patterns
from memctl.domain.support.literals import Literals
from memctl.domain.support.text import Runs

MOST = 8
"""Errors that are taken from one output."""

MOST_SHOWN = 128
"""Places of one shape that are looked at in one output, and of all: the first of them name what failed. A compiler
prints hundreds."""

LOOKED_AT = 33_000
"""Characters of a text that are looked at. What is kept of an output is shorter; what is asked for may be longer."""


class SeenError(msgspec.Struct, frozen=True):
    """One error in a text. Characters `start` to `end` show it (of the text without colour codes, see `plain`).

    `signature`: 16 hex digits, equal for the same error in another run. `message` at most 500 characters, `text` (the
    excerpt) at most 1,500. `code` is the line of source that the tool pointed at, where it shows one.
    """

    signature: str
    error_types: tuple[str, ...]
    template: str
    message: str
    text: str
    frames: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    start: int = 0
    end: int = 0
    code: str = ""


_WORD = patterns.compile(r"[^\W\d_]{2,}")
_WORDS = Runs(ascii_lowercase)
_SAY_LITTLE = frozenset(ascii_lowercase) | words_of(
    "error errors err fatal failed failure fail fails failing task tasks command commands process job step build exit "
    "exited code status with cannot can could not read open find run execute complete completed the to in of at is was "
    "unexpected unknown internal exception problem went wrong something occurred an no file files such or directory"
)


def says_little(message: str, least: int = 1) -> bool:
    """Whether a message has fewer words than that which set one failure apart from others ("ERROR task failed")."""
    text = message[:500].lower()
    words = _WORDS.within(text) if text.isascii() else _WORD.findall(text)
    return len(_SAY_LITTLE.union(words)) - len(_SAY_LITTLE) < least


_NOISE = patterns.compile(
    r"(?:<tool_use_error>)?(?:"
    r"The user doesn't want to (?:proceed|take this action)|User (?:rejected|declined|chose not)|"
    r"The tool use was rejected|Sibling tool call errored|\[?Request interrupted|Interrupted by user|"
    r"File has not been read yet|File has been (?:modified|unexpectedly modified)|File (?:content )?\(.{1,40}\) "
    r"exceeds|"
    r"String to replace not found|Found \d+ matches of the string|No changes to make|"
    r"File does not exist|Path does not exist|Directory does not exist|EISDIR|"
    r"InputValidationError|Input validation error|Unknown skill|No such tool|Unknown tool|"
    r"Cancelled: parallel tool call|This command requires approval|Permission to use|Permission (?:for|denied by)|"
    r"Hook PreToolUse|Denied by|Exit plan mode\?|Blocked:|Command was aborted|rejected by user|aborted by user|"
    r"failed to find expected lines|\S+ is temporarily unavailable, so auto mode|apply_patch verification failed|"
    r"Invalid Context|MCP error -32602|"
    # OpenCode's and SWE-agent's.
    r"(?:Error: )?(?:The user rejected permission|The user has specified a rule|The user dismissed this question|"
    r"Tool execution aborted|oldString not found|(?:Could not find|Found multiple matches for) oldString|"
    r"You must read (?:the )?file|The \w+ tool was called with invalid arguments)|"
    r"No replacement was performed|Your (?:proposed )?edit (?:was not applied|has introduced)|No edit was made"
    r")",
)
"""Failures of handling a tool, refusals and cancellations: they say nothing of the work."""


def is_noise(text: str) -> bool:
    """Whether a tool's failure says nothing of the work: a refusal, a cancelled sibling, a file not read yet."""
    return _NOISE.match(text.lstrip()[:200]) is not None


_HEADER = patterns.compile(r"\A(?:<tool_use_error>)?(?:(?:Error: )?Exit code:? \d+\n?)?")


def signature_of(text: str, command: str = "") -> list[SeenError]:
    """The errors that a text shows, in order of their places; also for an error that somebody typed or pasted.

    `command` is what printed it, where that is known. Empty when nothing looks like an error.
    """
    found = errors_in(text, command, failed=True)
    if found or not text.strip():
        return found
    return [_seen(FoundError(0, len(text), ("error",), _first_line(text)), plain(text))] if len(text) < 300 else []


def errors_in(text: str, command: str, *, failed: bool, exit_code: int | None = None) -> list[SeenError]:
    """The errors that a command's output shows, at most 8, distinct by signature, in order of their places.

    With `failed` false, only what nothing but a failure prints is believed: the command said it went well, or a pipe
    hid how it went.
    """
    text = plain(_ends_of(text))
    reads = bool(command) and only_reads(command)
    if reads and not failed:
        return []
    shown = _shown(text, PLAIN if failed else STRONG)
    if reads:
        # What a reader prints is a quotation; what it says in its own name is an error.
        shown = [s for s in shown if s.types[0].startswith(_OF_READERS)]
    elif failed and not shown:
        wrappers = _shown(text, WRAPPER)
        shown = _by_words(text, wrappers) or wrappers[:1] or _by_exit(command, text, exit_code)
    found: dict[str, SeenError] = {}
    kinds: set[tuple[str, ...]] = set()
    for each in shown[:MOST_SHOWN]:
        kind = _kind(each, command)
        if kind in kinds:
            continue
        kinds.add(kind)
        error = _seen(each, text, command)
        found.setdefault(error.signature, error)
        if len(found) == MOST:
            break
    return list(found.values())


class _Shapes:
    """Shapes that are looked for together, and the hints of all of them."""

    def __init__(self, shapes: Iterable[Shape]) -> None:
        self._shapes = tuple(shapes)
        self._hints = Literals(hint for shape in self._shapes for hint in shape.hints)

    def shown_in(self, text: str) -> list[FoundError]:
        hinted = self._hints.within(text)
        if not hinted:
            return []
        found = (islice(shape.find(text), MOST_SHOWN) for shape in self._shapes if not hinted.isdisjoint(shape.hints))
        return list(chain.from_iterable(found))


_SHAPES = {
    STRONG: _Shapes(shape for shape in SHAPES if shape.weight == STRONG),
    PLAIN: _Shapes(shape for shape in SHAPES if shape.weight in (STRONG, PLAIN)),
    WRAPPER: _Shapes(shape for shape in SHAPES if shape.weight == WRAPPER),
}
"""What is looked for: what nothing but a failure prints, what a failed command prints, and reports from further up."""
_OF_READERS = ("file", "usage", "git", "command not found", "shell", "HTTP", "GraphQL", "curl", "npm", "docker", "sql")


def _ends_of(text: str) -> str:
    """What is looked at: all of an output as it is kept; of a longer text its beginning and its end."""
    if len(text) <= LOOKED_AT:
        return text
    return f"{text[: LOOKED_AT // 2]}\n{text[-LOOKED_AT // 2 :]}"


def _shown(text: str, wanted: int) -> list[FoundError]:
    candidates = _SHAPES[wanted].shown_in(text)
    # An earlier shape of the list knows more; what lies inside what it found is its own.
    taken: list[FoundError] = []
    starts: list[int] = []
    for each in candidates:
        at = bisect_left(starts, each.end)
        if at == 0 or taken[at - 1].end <= each.start:
            taken.insert(at, each)
            starts.insert(at, each.start)
    return [each for each in taken if each.weight == STRONG] or taken


def _by_words(text: str, wrappers: list[FoundError]) -> list[FoundError]:
    """The first line that reads like an error, and is none of the reports that something failed further up."""
    body = _HEADER.match(text)
    at = body.end() if body else 0
    for line in text[at : at + 12_000].split("\n"):
        stripped = line.strip()
        is_error = len(stripped) > 3 and ERROR_WORDS.search(stripped) and not stripped.startswith(_HARMLESS)
        if is_error and not any(w.start < at + len(line) and at < w.end for w in wrappers):
            return [FoundError(at, at + len(line), ("error",), stripped[:500], weight=PLAIN)]
        at += len(line) + 1
    return []


_HARMLESS = ("ok ", "✓", "hint:", "//", "#")


def _by_exit(command: str, text: str, exit_code: int | None) -> list[FoundError]:
    head = head_of(command) if command else ""
    parts = parts_of(command)
    if parts and parts[-1].after == "|" and is_reading(parts[-1].head):
        return []  # the exit code of a filter that found nothing
    if not head or exit_code in (None, 0, 130, 141, 143):
        return []
    body = _HEADER.sub("", text, count=1).strip()
    return (
        [FoundError(0, min(len(text), 300), ("exit",), f"{head} exited with code {exit_code}", weight=PLAIN)]
        if body
        else []
    )


_POINTED_AT = patterns.compile(
    r"^(?:[> \t]*\d+ ?[|│])?[ \t]*(?P<code>[^\s|│^~][^\n]*)\n[ \t]*(?:\d* ?[|│])?[ \t]*(?:\^[\^~-]*|~{2,})",
    patterns.M,
)
"""A line of source with a caret or a wave under it."""


def _code_at(shown: FoundError, text: str) -> str:
    """The line of source that the output points at, on the lines below the message."""
    start, end = text.rfind("\n", 0, shown.start) + 1, min(len(text), shown.end + 600)
    if text.find("^", shown.start, end) < 0 and text.find("~~", shown.start, end) < 0:
        return shown.code
    found = _POINTED_AT.search(text, start, end)
    if found is None or _BLANK_LINE.search(text, shown.end, found.start()):
        return shown.code
    return found["code"].strip()[:200]


_BLANK_LINE = patterns.compile(r"\n[ \t]*\n")
_TESTED = patterns.compile(r" \(\d+(?:\.\d+)?m?s\)| \[\d+(?:\.\d+)?m?s\]")


def _kind(shown: FoundError, command: str) -> tuple[str, ...]:
    """What makes an error the same again: its types, its template, its frames."""
    types = _types(shown)
    # Which program refused an option: the way out of one subcommand is none of another's.
    refused = (head_of(command),) if command and "usage" in types else ()
    return (*(t.lower() for t in types), "", _template(shown, types), "", *shown.frames, *refused)


def _types(shown: FoundError) -> tuple[str, ...]:
    return tuple(t for t in dict.fromkeys(shown.types) if t)


def _template(shown: FoundError, types: tuple[str, ...]) -> str:
    return template_of(_TESTED.sub("", shown.message.strip()[:500]), types)


def _seen(shown: FoundError, text: str, command: str = "") -> SeenError:
    message, types = shown.message.strip()[:500], _types(shown)
    template = _template(shown, types)
    digest = hashlib.sha256("\0".join(_kind(shown, command)).encode("utf-8", "replace"))
    if " " not in message and "test failure" in types and shown.frames:
        message = f"{shown.frames[0]} {message}"[:500]  # which test failed, where no more is said
    start = text.rfind("\n", 0, shown.start) + 1
    end = min(max(shown.end, start), start + 1_200)
    more = text.find("\n", min(len(text), end + 200), end + 300)
    excerpt = text[start : more if more > 0 else min(len(text), end + 200)]
    return SeenError(
        signature=digest.hexdigest()[:16],
        error_types=types,
        template=template,
        message=message,
        text=excerpt.strip("\n")[:1_500],
        frames=shown.frames,
        files=tuple(dict.fromkeys(f.replace("\\", "/") for f in shown.files)),
        start=start,
        end=end,
        code=_code_at(shown, text),
    )


def _first_line(text: str) -> str:
    return next((line.strip() for line in plain(text).split("\n") if line.strip()), "")


def hides_exit(command: str) -> bool:
    """Whether a command's exit code may be that of a filter or of a later, unrelated part."""
    parts = parts_of(command)
    return any(later.after in ("|", ";", "||") and part.head not in ENTERING for part, later in pairwise(parts))
