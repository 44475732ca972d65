"""SpecStory's markdown under `.specstory/history`: other clients' sessions, rewritten as they grow.

Messages begin with `_**User (time)**_` or `_**Agent (model time)**_`, in older files without the brackets and
`_**Assistant**_`; thoughts and uses of tools are tagged blocks. A heading inside a code block or a tagged block is part
of it: what somebody quotes nobody said. Ids of messages are rare, so lines are the ordinals of messages. The session
keeps the id that it has with its client, under the agent `specstory`: read one of the two, or it counts twice.
"""

from __future__ import annotations

import hashlib
import html
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from memctl.domain.events.event import Micros, NewEvent
from memctl.domain.events.observations import Agent, SessionStarted
from memctl.domain.support import patterns
from memctl.domain.support.location import normalise
from memctl.infra.transcripts.fields import identifier, kind, micros
from memctl.infra.transcripts.formats import Line, Session, Unreadable, exit_code_of, lines_of

_TITLE = patterns.compile(r"##? (?P<title>.{1,300})")
_SESSION = patterns.compile(r"<!-- (?P<client>.{1,60}?) Session (?P<id>\S{1,200}) \((?P<time>[^)]*)\) -->")
_TIME = patterns.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) ?(Z|[+-]\d{2}:?\d{2})?")
_HEADING = patterns.compile(
    r"_\*\*(?P<role>User|Agent|Assistant|)(?P<side> - sidechain)?(?: \((?P<about>[^)]{0,200})\))?\*\*_\s*"
)
_ID = patterns.compile(r"<!-- message-id: (\S{1,200}) -->\s*")
_OPENS = patterns.compile(r"<(?P<tag>tool-use|think)\b(?P<attributes>[^>\n]*)><details>", patterns.M)
_NAMED = patterns.compile(r'data-tool-name="([^"]*)"')
_TYPED = patterns.compile(r'data-tool-type="([^"]*)"')
_SUMMARY = patterns.compile(r"\s*<summary>(?P<text>[^\n]*?)</summary>\n?")
_QUOTED = patterns.compile(r"`([^`\n]+)`")
_ARGUMENT = patterns.compile(r"- (?P<name>\w+):(?: `(?P<value>.*)`)?\s*")
_EXIT_CODE = patterns.compile(r"(?:Error: )?Exit code (\d{1,10})\b")
_FENCE = patterns.compile(r" {0,3}(?P<fence>`{3,}|~{3,})(?P<info>.*)")
_RULE = patterns.compile(r"\n---\s*\Z")


class _Message(NamedTuple):
    role: str
    subagent: str
    about: str
    id: str
    text: str


_INTERRUPTED = "[Request interrupted by user"
_WRITTEN = patterns.compile(
    r"\s*(?:The file|File (?:created|updated) successfully at:?) (?P<path>\S.*?)(?: has been \w+|$)"
)
"""What Claude Code says of an edit whose text SpecStory leaves out."""


class SpecStory:
    """The format's reader. It keeps what the head of the file said."""

    agent: Agent = "specstory"

    def __init__(self, path: Path | None = None) -> None:
        self._title = self._role = ""
        self._began = Micros(0)
        folder = path.resolve().parent if path is not None else Path()
        history = folder.parts[-2:] == (".specstory", "history")
        location = normalise(str(folder.parent.parent)) if history else ""
        self._session = Session("specstory", location=location, in_markdown=True)

    def split(self, data: bytes) -> list[Any]:
        lines = lines_of(data)
        headings = _headings(lines)
        head = "\n".join(lines[: headings[0] if headings else len(lines)])
        messages = [_message(lines[start:end]) for start, end in pairwise([*headings, len(lines)])]
        self._begin(head, messages)
        return [head, *messages]

    def _begin(self, head: str, messages: list[_Message]) -> None:
        title, session = _TITLE.search(head.replace("## SpecStory", "")), _SESSION.search(head)
        self._title = title["title"].strip() if title else ""
        times = [session["time"] if session else "", self._title, *(message.about for message in messages)]
        self._began = next((moment for text in times if (moment := _moment(text))), Micros(0))
        if session:
            self._session.id = identifier(session["id"])
        elif messages:
            # Older files name no session: a title with its time, and the first prompt, are fixed once written.
            named = f"{self._title}\n{messages[0].text}".encode("utf-8", "surrogatepass")
            self._session.id = f"chat-{hashlib.sha256(named).hexdigest()[:24]}"

    def read(self, record: Any, place: str) -> list[NewEvent] | str:
        if not self._session.id:
            raise Unreadable("holds no message")
        if isinstance(record, _Message):
            self._role = record.role or self._role  # `_****_` goes on with what the last one said
            id, moment = record.id or place, _moment(record.about) or self._began
            line = Line(self._session, id, moment, model=_model(record.about), subagent=record.subagent)
            _read(record.text, self._role, line)
        else:
            line = Line(self._session, "start", self._began)
            line.add(SessionStarted(source="startup", title=self._title, **line.fields))
        return line.events or kind(self._role or "message", "empty")


def _headings(lines: list[str]) -> list[int]:
    """The lines that begin a message: those outside code and tagged blocks."""
    found = []
    tag = ""
    for number, line in outside(lines, fences(lines)):
        if tag:
            tag = "" if f"</{tag}>" in line else tag
        elif (opens := _OPENS.match(line)) and f"</{opens['tag']}>" not in line:
            tag = opens["tag"]
        elif _HEADING.fullmatch(line):
            found.append(number)
    return found


def _message(lines: list[str]) -> _Message:
    heading = _HEADING.fullmatch(lines[0])
    assert heading
    body = lines[1:]
    id = _ID.fullmatch(body[0]) if body else None
    text = _RULE.sub("", "\n".join(body[1:] if id else body).rstrip())
    role = {"User": "user", "": ""}.get(heading["role"], "agent")
    subagent = "sidechain" if heading["side"] else ""
    return _Message(role, subagent, heading["about"] or "", identifier(id[1]) if id else "", text.strip())


def _moment(text: str) -> Micros:
    found = _TIME.search(text)
    return micros(f"{found[1]}T{found[2]}{found[3] or ''}") if found else Micros(0)


def _model(about: str) -> str:
    """`claude-opus-4-6 2026-02-10 22:17:49Z`, or `model claude-4.5, mode Agent`."""
    named = _TIME.sub("", about).partition(",")[0].removeprefix("model ").strip()
    return named[:200]


def _read(text: str, role: str, line: Line) -> None:
    """A message's parts in order. Part k has block 2k, what came back of a use of a tool the block behind."""
    block = 0
    for part in _parts(text) if role != "user" else [_Part("", "", text)]:
        words = part.text.strip()
        if part.tag == "tool-use":
            _used(part.attributes, part.text, block, line)
        elif not words:
            continue
        elif role != "user":
            line.said(words, thinking=bool(part.tag), block=block)
        elif words.startswith(_INTERRUPTED):
            line.noticed("interrupted", words, block=block)
        else:
            line.prompted(words, block=block)
        block += 2


class _Part(NamedTuple):
    tag: str
    attributes: str
    text: str


def _parts(text: str) -> Iterator[_Part]:
    """Words, and what stands in tags, in order. A tag that nothing closes is words."""
    at = 0
    while opens := _OPENS.search(text, at):
        close = f"</details></{opens['tag']}>"
        end = text.find(close, opens.end())
        if end < 0:
            break
        yield _Part("", "", text[at : opens.start()])
        body = text[opens.end() : end]
        yield _Part(
            opens["tag"], opens["attributes"], _SUMMARY.sub("", body, count=1) if opens["tag"] == "think" else body
        )
        at = end + len(close)
    yield _Part("", "", text[at:])


def _used(attributes: str, body: str, block: int, line: Line) -> None:
    """A use of a tool, which SpecStory renders for reading: the command or path in backticks, the result in a code
    block.
    """
    named, typed, summary = _NAMED.search(attributes), _TYPED.search(attributes), _SUMMARY.match(body)
    tool = html.unescape(named[1]) if named else ""
    lines = (body[summary.end() :] if summary else body).split("\n")
    given, result, failed = _rendered(typed[1] if typed else "", lines, summary["text"] if summary else "")
    call, code = f"{line.fields['line']}.{block}", exit_code_of(_EXIT_CODE.match(result))
    line.called(tool, call, given, block=block)
    line.answered(
        failed=failed or code or result.startswith("<tool_use_error>"),
        text=result,
        tool=tool,
        call=call,
        exit_code=code,
        file=given.get("file_path", ""),
        block=block + 1,
    )


def _rendered(type: str, lines: list[str], summary: str) -> tuple[dict[str, Any], str, bool]:
    """A call's arguments as far as the rendering shows them, its result, and whether that is said to be an error."""
    blocks = fences(lines)
    plain = outside(lines, blocks)
    marked = next((number for number, line in plain if line in ("**Result:**", "**Error:**")), None)
    if marked is not None:
        given = _listed([(number, line) for number, line in plain if number < marked], blocks)
        result = next((block.text for block in blocks if block.start > marked), "")
        return given, result, lines[marked] == "**Error:**"
    quoted = [text for _, line in plain for text in _QUOTED.findall(line)] or _QUOTED.findall(summary)
    given, blocks = _given(type, quoted, blocks)
    return given, blocks[-1].text if blocks else "", False


def _given(type: str, quoted: list[str], blocks: list[Fence]) -> tuple[dict[str, Any], list[Fence]]:
    """A call's arguments, as what is quoted and the code blocks show them by the type of its tool; and the blocks that
    are no part of them."""
    if type == "shell":
        if blocks and blocks[0].info in ("bash", "sh", "zsh") and blocks[0].text:
            return {"command": blocks[0].text}, blocks[1:]
        return ({"command": quoted[-1]} if quoted else {}), blocks
    if type == "write" and not quoted and blocks and (written := _WRITTEN.match(blocks[-1].text)):
        return {"file_path": written["path"]}, blocks
    if type == "write" and blocks:
        return {"file_path": quoted[0] if quoted else "", "content": blocks[0].text}, blocks[1:]
    if type in ("read", "write") and quoted:
        return {"file_path": quoted[0]}, blocks
    return ({"input": " ".join(quoted)} if quoted else {}), blocks


def _listed(lines: list[tuple[int, str]], blocks: Sequence[Fence]) -> dict[str, Any]:
    """Arguments in a list of `- name: value`; one of several lines stands in a code block below."""
    given: dict[str, Any] = {}
    by_start = {block.start: block.text for block in blocks}
    for number, line in lines:
        if found := _ARGUMENT.fullmatch(line):
            below = by_start.get(number + 1, by_start.get(number + 2, ""))
            given[found["name"]] = below if found["value"] is None else found["value"]
    return given


# --- code blocks of markdown ---


class Fence(NamedTuple):
    """A code block: the numbers of its first line, which opens it, and of the line behind its last."""

    start: int
    end: int
    info: str
    text: str


def fences(lines: Sequence[str]) -> list[Fence]:
    """The code blocks of a text. One that nothing closes goes on to the end."""
    found: list[Fence] = []
    opened: patterns.Match[str] | None = None
    start = 0
    for number, line in enumerate(lines):
        fence = _FENCE.fullmatch(line)
        if fence is None:
            continue
        if opened is None:
            if "`" not in fence["info"]:  # else it is code on one line
                opened, start = fence, number
        elif fence["fence"].startswith(opened["fence"]) and not fence["info"].strip():
            found.append(Fence(start, number + 1, opened["info"].strip(), "\n".join(lines[start + 1 : number])))
            opened = None
    if opened is not None:
        found.append(Fence(start, len(lines), opened["info"].strip(), "\n".join(lines[start + 1 :])))
    return found


def outside(lines: Sequence[str], blocks: Sequence[Fence]) -> list[tuple[int, str]]:
    """The lines that stand in no code block, with their numbers."""
    found, at = [], 0
    for block in [*blocks, Fence(len(lines), len(lines), "", "")]:
        found += [(number, lines[number]) for number in range(at, block.start)]
        at = block.end
    return found
