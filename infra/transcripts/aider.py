"""Aider's `.aider.chat.history.md`: markdown that grows, one file a project, many chats.

A chat begins with `# aider chat started at`, a prompt's lines with `#### `, aider's own words with `> `; these lines
end in two spaces, which sets them apart from headings and quotes in answers. All else is the answer. A chat has no id:
it is named by its time and a digest of its text up to its first prompt, and its lines count from its own heading, so
that trimmed and joined histories give the same events. A chat has one time, of the zone of the machine that reads it.

Not kept: chats without a prompt, questions that aider asks and the announcements behind its version and model.
`.aider.input.history` repeats the prompts and is not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from memctl.domain.events.event import Micros, NewEvent
from memctl.domain.events.observations import Agent, SessionStarted
from memctl.domain.shell.programs import words_of
from memctl.domain.support import patterns
from memctl.domain.support.location import normalise
from memctl.domain.support.text import digest_of
from memctl.infra.transcripts.fields import micros
from memctl.infra.transcripts.formats import Line, Session, lines_of, token_counts

NAME = ".aider.chat.history.md"

_STARTED = patterns.compile(r"# aider chat started at (\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)\s*")
_PROMPT = patterns.compile(r"####(?: (.*?))? ? {2}")
_SAID = patterns.compile(r">(?: (.*?))? ? {2}")

_VERSION = patterns.compile(r"Aider v(\S+)")
_MODEL = patterns.compile(r"(?:Main model|Models?): (\S+) with\b")
_TOKENS = patterns.compile(
    r"Tokens: (?P<sent>[\d.,]+[kM]?) sent(?:, [\d.,]+[kM]? cache write)?(?:, (?P<hit>[\d.,]+[kM]?) cache hit)?, "
    r"(?P<received>[\d.,]+[kM]?) received"
)
_APPLIED = patterns.compile(r"Applied edit to (.+)")
_COMMITTED = patterns.compile(r"Commit [0-9a-f]{7,40} \S.*")
_INTERRUPTED = patterns.compile(r"\^C KeyboardInterrupt")
_NOT_APPLIED = patterns.compile(r"(?:The LLM did not conform|.*SEARCH/REPLACE block.* failed to match)")
_SEARCH, _DIVIDER, _REPLACE = (patterns.compile(p) for p in (r"<{5,9} SEARCH\s*", r"={5,9}\s*", r">{5,9} REPLACE\s*"))
_REFLECTED = ("# Fix any errors below, if possible.",)
"""What aider itself says in the user's place."""

_OWN = words_of(
    "add chat-mode clear commands commit copy copy-context diff drop edit editor editor-model exit git help lint load "
    "ls map map-refresh model models multiline-mode ok paste quit read-only reasoning-effort report reset run save "
    "settings test think-tokens tokens undo voice weak-model web"
)
"""Commands of aider that say nothing to the model, or no words of the user's."""


class _Section(NamedTuple):
    """Lines of one kind. `line` counts from the chat's heading; `chat` is None in front of the first."""

    kind: str
    line: int
    text: str
    chat: _Chat | None


class _Chat:
    """One chat, as far as it has been split."""

    def __init__(self, heading: str, occurred_at: Micros) -> None:
        self.occurred_at = occurred_at
        self.session = Session("aider", in_markdown=True)
        """Its id is known once the first prompt has come."""
        self.head = [heading]
        self.proposed: dict[str, list[dict[str, str]]] = {}
        """The edits that the latest answer proposes and that were not reported yet, by path."""

    def begin(self, heading: str) -> None:
        digest = digest_of("\n".join(self.head), 12)
        self.session.id = f"{heading.replace(' ', 'T').replace(':', '-')}-{digest}"


class Aider:
    """The format's reader."""

    agent: Agent = "aider"

    def __init__(self, path: Path | None = None) -> None:
        # The history lies at the root of the repository that the chats are about.
        self._location = normalise(str(path.resolve().parent)) if path is not None and path.name == NAME else ""

    def split(self, data: bytes) -> list[Any]:
        sections = list(_sections(lines_of(data)))
        return [
            section._replace(kind="mode") if _said_again(section, after) else section
            for section, after in zip_longest(sections, sections[1:])
        ]

    def read(self, record: Any, place: str) -> list[NewEvent] | str:
        section: _Section = record
        chat = section.chat
        if chat is None:
            return "outside a chat"
        if not chat.session.id:
            return "chat without a prompt"
        line = Line(chat.session, f"#{section.line}", chat.occurred_at, location=self._location)
        match section.kind:
            case "started":
                line.add(SessionStarted(source="startup", **line.fields))
            case "prompt":
                chat.proposed = {}
                _prompt(section.text.strip(), line)
            case "mode":
                line.noticed("command", section.text.strip())
            case "answer":
                chat.proposed = _proposed(section.text)
                line.said(section.text.strip())
            case _:
                _report(section.text.split("\n"), chat, line)
        return line.events or section.kind


def _sections(lines: list[str]) -> Iterator[_Section]:
    """Runs of lines of one kind, in the order of the file; blank runs belong to nothing."""
    chat: _Chat | None = None
    at, start = 0, 0
    """Line that the chat begins at, and line that the run begins at."""
    run: list[str] = []
    kind = "answer"

    def ended() -> Iterator[_Section]:
        if any(line.strip() for line in run):
            yield _Section(kind, start - at + 1, "\n".join(run), chat)

    for number, line in enumerate(lines):
        if started := _STARTED.fullmatch(line):
            yield from ended()
            chat, at, run, kind = _Chat(line, _local(f"{started[1]}T{started[2]}")), number, [], "answer"
            start = number + 1
            yield _Section("started", 1, f"{started[1]} {started[2]}", chat)
            continue
        prompt, said = _PROMPT.fullmatch(line), _SAID.fullmatch(line)
        found = "prompt" if prompt else "output" if said else "answer"
        if chat is not None and not chat.session.id:
            chat.head.append(line)
            if prompt and (prompt[1] or "").strip():
                chat.begin(_STARTED.sub(lambda found: f"{found[1]} {found[2]}", chat.head[0]))
        if found != kind:
            yield from ended()
            run, kind, start = [], found, number
        match = prompt or said
        run.append(line if match is None else match[1] or "")
    yield from ended()


def _local(time: str) -> Micros:
    """A time of this machine's zone, or 0."""
    try:
        return micros(datetime.fromisoformat(time).astimezone().isoformat())
    except (ValueError, OverflowError, OSError):
        return Micros(0)


def _said_again(section: _Section, after: _Section | None) -> bool:
    """Whether `/ask …` stands here only because what was asked stands behind it once more, as aider writes it."""
    if after is None or section.kind != "prompt" or after.kind != "prompt" or after.chat is not section.chat:
        return False
    command, _, words = section.text.strip().partition(" ")
    return command.startswith("/") and bool(words.strip()) and words.strip() == after.text.strip()


def _prompt(text: str, line: Line) -> None:
    command = text[1:].split(maxsplit=1) if text[:1] == "/" else []
    if text[:1] == "!" or (command and command[0] in _OWN):
        line.noticed("command", text)
    else:
        line.prompted(text, meta=text.startswith(_REFLECTED))


def _report(lines: list[str], chat: _Chat, line: Line) -> None:
    """What aider reports, a block for each line that is understood. A call has no id of its own: it is named by the
    place of the line that reports it."""
    for number, text in enumerate(lines):
        block, call = 2 * number, f"{line.fields['line']}.{number}"
        if version := _VERSION.fullmatch(text):
            chat.session.agent_version = version[1]
        elif model := _MODEL.match(text):
            chat.session.model = model[1]
        elif tokens := _TOKENS.match(text):
            sent, hit, received = (_number(tokens[name] or "0") for name in ("sent", "hit", "received"))
            line.noticed("tokens", data=token_counts(taken=sent, given=received, cached=hit), block=block)
        elif applied := _APPLIED.fullmatch(text):
            path = applied[1].strip()
            # Applied once: a report of the same path again is of an edit that this answer did not propose.
            edits = chat.proposed.pop(path, [])
            line.called("edit", call, {"file_path": path, **({"edits": edits} if edits else {})}, block=block)
            line.answered(failed=False, text=text, tool="edit", call=call, file=path, block=block + 1)
        elif _NOT_APPLIED.match(text):
            line.called("edit", call, {}, block=block)
            line.answered(failed=True, text="\n".join(lines[number:]), tool="edit", call=call, block=block + 1)
            return
        elif _COMMITTED.fullmatch(text):
            line.noticed("commit", text, block=block)
        elif _INTERRUPTED.fullmatch(text):
            line.noticed("interrupted", text, block=block)


def _proposed(answer: str) -> dict[str, list[dict[str, str]]]:
    """The edits that an answer proposes, by path."""
    found: dict[str, list[dict[str, str]]] = {}
    for path, before, after in _edits(answer) if "SEARCH" in answer else ():
        found.setdefault(path, []).append({"old_string": before, "new_string": after})
    return found


def _edits(answer: str) -> Iterator[tuple[str, str, str]]:
    """Path, before and after of each edit that an answer proposes; the path stands above, maybe above a code fence."""
    path = ""
    before: list[str] | None = None
    after: list[str] | None = None
    for line in answer.split("\n"):
        if after is not None:
            if _REPLACE.fullmatch(line):
                yield path, "\n".join(before or ()), "\n".join(after)
                before = after = None
            else:
                after.append(line)
        elif before is not None:
            if _DIVIDER.fullmatch(line):
                after = []
            else:
                before.append(line)
        elif _SEARCH.fullmatch(line):
            before = []
        elif line.strip() and not line.startswith("```"):
            path = line.strip().strip("*#:` ")


def _number(text: str) -> int:
    """A count as aider prints it: `5,244`, `5.2k`, `1.1M`."""
    scale = {"k": 1_000, "M": 1_000_000}.get(text[-1:], 1)
    try:
        return round(float(text.rstrip("kM").replace(",", "")) * scale)
    except ValueError:
        return 0
