"""What people and projects show without saying it: commands that passed, habits of asking, what is refused.

One claim a session at most about each thing, so that a claim's sessions count how often it was shown. What a passing
command shows is proved; a habit or a refusal graduates when several sessions show it (`domain.graduation`).
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import NamedTuple

from memctl.domain.asserting import Assertions
from memctl.domain.event import Event
from memctl.domain.facts import InsightFound, InsightKind, Span, fact_id, quote
from memctl.domain.graduation import ONE_ANSWER
from memctl.domain.habits import habits_in
from memctl.domain.observations import PromptSubmitted, ToolCalled, ToolFailed, ToolOutcome
from memctl.domain.ordering import Placed
from memctl.domain.prompts import said_in
from memctl.domain.shell import Part, heads_of, is_reading, parts_of, proves
from memctl.domain.text import canonical

_TELLING = re.compile(
    r"test|lint|check|fmt|format|prettier|tsc|mypy|ruff|vet|clippy|build|compile|install|add|run|git |gh "
)
"""One of these is in every command that may show something."""

_HEAD = re.compile(r"(?!git |.*\.(?:[jt]sx?|py|sh|rb)\b)[A-Za-z][\w.:+-]*(?: [A-Za-z][\w.:/+-]*){0,2}")
_SCRIPT = re.compile(
    r"(?:bun|npm|pnpm|yarn|deno|poetry|pdm|hatch|uv)(?: run \S+| test)|(?:mise|task|rake|nx|turbo) \S.*"
    r"|(?:make|just|nox|tox)\b.*"
)
"""Heads that a project defines itself: one passing run is enough to know them."""

_PURPOSES = (
    ("test", re.compile(r""), "The tests run with `{}`"),
    ("check", re.compile(r"\bfix\b"), "Lint problems are fixed with `{}`"),
    ("check", re.compile(r"lint|clippy|\bvet\b|ruff|eslint|biome"), "Linting is done with `{}`"),
    ("check", re.compile(r"fmt|format|prettier|\bblack\b"), "Formatting is done with `{}`"),
    ("check", re.compile(r"tsc|mypy|pyright|type-?check"), "Types are checked with `{}`"),
    ("check", re.compile(r"\b(?:check|verify|ci)\b"), "The code is checked with `{}`"),
    ("build", re.compile(r""), "The project builds with `{}`"),
)
_MANAGERS = {
    "npm": "package manager", "pnpm": "package manager", "yarn": "package manager", "bun": "package manager",
    "uv": "python package manager", "poetry": "python package manager", "pipenv": "python package manager",
}  # fmt: skip
_SHOWING = frozenset((*_MANAGERS, "gh"))
"""Programs whose passing shows something, whatever they were told to do."""

_MANAGING = re.compile(r"\w+ (?:install|add|ci|sync|run)\b")
_INSTALLING = re.compile(r"\w+ (?:install|add|ci|sync)\b")
_CONVENTIONAL = re.compile(
    r"(?:feat|fix|docs|chore|refactor|test|style|perf|ci|build|revert)(?:\([\w./, -]+\))?!?: \S[^\n\"']{3,80}"
)
_CREDIT = re.compile(r"Co-Authored-By: (?:Claude|Codex|Copilot|Gemini|Cursor)[^\n\"]{0,60}", re.IGNORECASE)
_BRANCH = re.compile(
    r"git (?:checkout -b|switch -c) (?P<name>(?:feat|feature|fix|bugfix|hotfix|chore|docs|refactor|test)/[\w./-]+)"
)
_MESSAGE = re.compile(r"git commit\b[^\n]*?-m\s+(?:\"\$\(cat <<-?\s*'?\w+'?\n\s*)?[\"']?(?P<subject>[^\n\"']{8,90})")
_OFTEN = 3
"""Passing runs within a session from which another head is how a project does it, and not a look at something."""

_TWICE = 2
"""Times within a session from which a form of commits or branches is no accident."""

_CHANGES = 3
"""Changes to files of a language from which a session was work in it."""

_LANGUAGES = {
    "py": "Python", "go": "Go", "rs": "Rust", "ts": "TypeScript", "tsx": "TypeScript", "js": "JavaScript",
    "jsx": "JavaScript", "java": "Java", "kt": "Kotlin", "c": "C", "cc": "C++", "cpp": "C++", "cs": "C#", "rb": "Ruby",
    "php": "PHP", "swift": "Swift", "scala": "Scala", "sql": "SQL", "ex": "Elixir", "lua": "Lua", "zig": "Zig",
}  # fmt: skip
_REFUSED = "STOP what you are doing"
"""How a client tells the agent that the user said no to a use of a tool, and nothing more. (A reason is read as the
user's words.)"""


@lru_cache(maxsize=1024)
def _telling(command: str) -> tuple[Part, ...]:
    """The parts of a command that show something, where all of them passed when it did."""
    parts = parts_of(command)
    if any(part.after not in ("", "&&") for part in parts):
        return ()
    return tuple(
        part
        for part in parts
        if (proves(part.head) or part.head.split(" ", 1)[0] in _SHOWING) and _HEAD.fullmatch(part.head)
    )


class _Command(NamedTuple):
    """A command under way, and where the call says it."""

    text: str
    event: Event
    field: str


class Shown:
    """What one stream has shown so far."""

    def __init__(self, assertions: Assertions) -> None:
        self._assert = assertions
        self._commands: dict[str, _Command] = {}
        self._edits: dict[str, tuple[str, _Command]] = {}
        self._runs: Counter[str] = Counter()
        self._told: set[str] = set()

    # --- the work ---

    def called(self, placed: Placed, seen: ToolCalled) -> None:
        given = seen.input
        if not seen.call or not given:
            return
        command = given.get("command", given.get("cmd"))
        field = "input.command" if "command" in given else "input.cmd"
        if isinstance(command, list) and len(command) == 3 and command[1] in ("-c", "-lc"):
            command, field = command[2], f"{field}.2"
        if isinstance(command, str):
            self._commands[seen.call] = _Command(command, placed.event, field)
            return
        path = given.get("file_path")
        if isinstance(path, str) and ("old_string" in given or "content" in given or "edits" in given):
            language = _LANGUAGES.get(path.rpartition(".")[2].lower())
            if language is not None and f"language {language}" not in self._told:
                self._edits[seen.call] = (language, _Command(path, placed.event, "input.file_path"))

    def came_back(self, placed: Placed, seen: ToolOutcome) -> None:
        command = self._commands.pop(seen.call, None)
        edit = self._edits.pop(seen.call, None)
        if isinstance(seen, ToolFailed):
            if command is not None and _REFUSED in seen.text[:600]:
                self._refused(placed, command)
            return
        passed = seen.exit_code in (None, 0) and not seen.interrupted
        if command is not None and passed and _TELLING.search(command.text):
            self._passed(placed, command)
        if edit is not None:
            language, path = edit
            self._runs[language] += 1
            if self._runs[language] == _CHANGES:
                text = f"Works on {language} code"
                self._tell(placed, path, f"language {language}", "expertise", text, everywhere=True, confidence=0.6)

    def _passed(self, placed: Placed, command: _Command) -> None:
        for part in _telling(command.text):
            self._ran(placed, command, part)
        if "git c" in command.text or "git s" in command.text:
            self._committed(placed, command)

    def _committed(self, placed: Placed, command: _Command) -> None:
        """The forms of commits and branches that a command made."""
        message = _MESSAGE.search(command.text) if "git commit" in command.text else None
        if message is not None and _CONVENTIONAL.match(message["subject"]):
            text = "Commit messages follow Conventional Commits (`feat: …`, `fix(scope): …`)"
            self._form(placed, command, text, message["subject"])
        if message is not None and (credit := _CREDIT.search(command.text)):
            self._form(placed, command, "Commit messages credit the agent as co-author", credit[0])
        if branch := _BRANCH.search(command.text):
            text = "Branches are named by the kind of work (`feat/…`, `fix/…`)"
            self._form(placed, command, text, branch["name"])

    def _form(self, placed: Placed, command: _Command, text: str, said: str) -> None:
        self._runs[text] += 1
        if self._runs[text] == _TWICE:
            self._tell(placed, command, text, "pattern", text, said=said)

    def _ran(self, placed: Placed, command: _Command, part: Part) -> None:
        """A part of a command passed: what it says of how this project is worked on."""
        head = part.head
        program = head.split(" ", 1)[0]
        said = " ".join(part.words)
        if {"-g", "--global"} & set(part.words):
            return
        if program in _MANAGERS and f"manager {program}" not in self._told and _MANAGING.match(head):
            text, subject = f"Packages are managed with {program}", f"{ONE_ANSWER}{_MANAGERS[program]}"
            self._tell(
                placed, command, f"manager {program}", "fact", text, proved=True, said=said,
                canonical_form=program, subject=subject, polarity=1,
            )  # fmt: skip
        if program == "gh":
            self._runs["gh"] += 1
            if self._runs["gh"] == _TWICE:
                text = "GitHub (pull requests, issues, runs) is worked on with `gh`"
                self._tell(placed, command, "gh", "fact", text, proved=True, said=said)
        purpose = "" if head in self._told or _INSTALLING.match(head) else proves(head)
        if not purpose:
            return
        self._runs[head] += 1
        if self._runs[head] >= (1 if _SCRIPT.fullmatch(head) else _OFTEN):
            shape = next((text for kind, shape, text in _PURPOSES if kind == purpose and shape.search(head)), "")
            if not shape:
                return
            subject = canonical(shape.replace("`{}`", ""))
            self._tell(
                placed, command, head, "fact", shape.format(head), proved=True, said=said,
                canonical_form=f"{subject} {head}", subject=subject,
            )  # fmt: skip

    def _refused(self, placed: Placed, command: _Command) -> None:
        # Runs of tests are refused for want of time, looks at something for want of a reason.
        heads = [head for head in heads_of(command.text) if not (is_reading(head) or proves(head))]
        if heads and len(heads[0]) <= 40 and heads[0].isprintable():
            text = f"Did not let the agent run `{heads[0]}`"
            self._tell(placed, command, f"refused {heads[0]}", "preference", text, subject=heads[0], confidence=0.5)

    # --- the asking ---

    def prompted(self, placed: Placed, seen: PromptSubmitted) -> None:
        if seen.subagent or seen.meta:
            return
        said = said_in(seen.text)
        if said.by != "user":
            return
        for habit in habits_in(said):
            if habit.text not in self._told:
                words = _Command(seen.text, placed.event, "text")
                quoted = seen.text[habit.start : habit.end]
                self._tell(
                    placed, words, habit.text, habit.kind, habit.text, said=quoted,
                    everywhere=habit.everywhere, by_user=habit.stated, confidence=0.8 if habit.stated else 0.6,
                )  # fmt: skip

    def _tell(
        self,
        placed: Placed,
        source: _Command,
        about: str,
        kind: InsightKind,
        text: str,
        *,
        said: str = "",
        proved: bool = False,
        by_user: bool = False,
        everywhere: bool = False,
        confidence: float = 0.7,
        canonical_form: str = "",
        subject: str = "",
        polarity: int = 0,
    ) -> None:
        """Assert the claim once, on the characters `said` of the source, or all of it."""
        if about in self._told:
            return
        self._told.add(about)
        form = canonical_form or canonical(text)
        start = source.text.find(said) if said else 0
        end = start + len(said) if said and start >= 0 else len(source.text)
        span = quote(source.event.delivery_id, source.text, max(start, 0), end, source.field)
        self._assert.add(
            InsightFound(
                id=fact_id(self._assert.stream, "insight_found", f"shown:{about}"),
                stream=self._assert.stream,
                occurred_at=placed.when,
                location=self._assert.location,
                subagent=placed.payload.subagent,
                evidence=(span, Span(placed.cite)) if proved else (span,),
                kind=kind,
                text=text,
                canonical=form,
                subject=subject or form,
                confidence=confidence,
                said_by="user" if by_user else "tool",
                polarity=polarity,
                rule="shown",
                everywhere=everywhere,
                proved=proved,
            )
        )
