"""What projects show without anybody saying it: commands that passed, and the forms of commits and branches.

One claim a session at most about each thing, so that a claim's sessions count how often it was shown. What a passing
command shows is proved; a form graduates when several sessions show it (`domain.knowledge.graduation`).
"""

from collections import Counter
from typing import NamedTuple

from memctl.domain.events.event import Event
from memctl.domain.events.event_order import OrderedEvent
from memctl.domain.events.fact_builder import FactBuilder
from memctl.domain.events.facts import InsightFound, InsightKind, Span, fact_id, quote
from memctl.domain.events.observations import ToolCalled, ToolFailed, ToolOutcome
from memctl.domain.failures.signatures import is_noise
from memctl.domain.knowledge.graduation import ONE_ANSWER
from memctl.domain.projects.stack import is_conventional, subject_of
from memctl.domain.session.tools import directory_of
from memctl.domain.session.working_directory import git_stays_in
from memctl.domain.shell.commands import Part, parts_of
from memctl.domain.shell.directories import parts_where
from memctl.domain.shell.project_commands import PROGRAMS, ProjectCommand, is_there, way_of
from memctl.domain.support import patterns
from memctl.domain.support.location import inside
from memctl.domain.support.provenance import Provenance
from memctl.domain.support.text import canonical

_MAY_SHOW = patterns.compile(
    r"activate|compose up|test|spec|lint|check|fmt|format|prettier|tsc|mypy|ruff|vet|clippy|build|compile|generate|"
    r"codegen|migrat|install|add |run |(?:^|[^/])dev|start|serve|verify|ci\b|git |gh "
)
"""One of these is in every command that may show something, near its beginning."""

_LOOKED_AT = 2_000

_MANAGERS = {
    "npm": "package manager", "pnpm": "package manager", "yarn": "package manager", "bun": "package manager",
    "uv": "python package manager", "poetry": "python package manager", "pipenv": "python package manager",
}  # fmt: skip
_SHOWING = PROGRAMS | {"git", "gh"}
"""Programs whose runs may show something."""

_MANAGING = patterns.compile(r"(?:\w+ (?:install|add|ci|sync)|(?:pnpm|yarn|bun) run)\b")
SHORTEST_SUBJECT = 8
"""Characters below which a commit's message ("initial", "wip") shows no habit."""

_NEW_BRANCH = patterns.compile(r"git (?:checkout -b|switch -c|worktree add (?:\S+ )?-b) (?P<name>[\w./-]+)")
_BY_KIND = patterns.compile(r"(?:feat|feature|fix|bugfix|hotfix|chore|docs|refactor|test|ci|release)/[\w./-]+")
_TO_MAIN = patterns.compile(r"(?:HEAD:)?(?:main|master)")
_SEVERAL = 2
"""Passing runs within a session from which a tool is how a project does it, and not a look at something."""

_TWICE = 2
"""Uses of a client of a forge within a session from which it is there, and signed in."""

_FORMS = {
    "conventional": "Commit messages follow Conventional Commits (`feat: …`, `fix(scope): …`)",
    "plain": "Commit messages are plain sentences, without a type in front (no `feat:`, `fix:`)",
    "branches": "Branches are named by the kind of work (`feat/…`, `fix/…`)",
    "requests": "Changes reach the main branch by pull request (`gh pr create`), not by a push to it",
}


class _Command(NamedTuple):
    """A command under way, and where the call says it."""

    text: str
    event: Event
    field: str
    began: str = ""
    """The directory that it begins in."""


class ProjectPractices:
    """What one stream has shown so far."""

    def __init__(self, assertions: FactBuilder) -> None:
        self._assert = assertions
        self._commands: dict[str, _Command] = {}
        self._runs: Counter[str] = Counter()
        self._claimed: set[str] = set()
        self._tools: dict[str, tuple[str, str]] = {}
        """Claims of tools that are no project's own, by what they are for: its text and canonical form."""
        self._own: set[str] = set()
        """What the project has commands of its own for."""

    def called(self, placed: OrderedEvent, seen: ToolCalled) -> None:
        given = seen.input
        if not seen.call or not given:
            return
        command = given.get("command", given.get("cmd"))
        field = "input.command" if "command" in given else "input.cmd"
        if isinstance(command, list) and len(command) == 3 and command[1] in ("-c", "-lc"):
            command, field = command[2], f"{field}.2"
        if isinstance(command, str):
            began = directory_of(given, self._assert.directory)
            self._commands[seen.call] = _Command(command, placed.event, field, began=began)

    def came_back(self, placed: OrderedEvent, seen: ToolOutcome) -> None:
        command = self._commands.pop(seen.call, None)
        if command is None or not _MAY_SHOW.search(command.text[:_LOOKED_AT]):
            return
        if isinstance(seen, ToolFailed):
            if not is_noise(seen.text):
                self._ran(placed, command, seen.text, passed=False)
        elif not seen.interrupted:
            passed = seen.exit_code in (None, 0)
            self._ran(placed, command, seen.text, passed=passed)
            if passed and ("git c" in command.text or "git s" in command.text or "git w" in command.text):
                self._committed(placed, command)

    def _ran(self, placed: OrderedEvent, command: _Command, output: str, *, passed: bool) -> None:
        """A command came back: what its parts say of how this project is worked on."""
        if not any(part.head.partition(" ")[0] in _SHOWING for part in parts_of(command.text)):
            return
        base, there = self._assert.top, None
        parts = list(parts_where(command.text, command.began))
        proved = passed and all(part.after in ("", "&&") for _, part in parts)
        for at, part in parts:
            if part.after in ("|", "||") or not inside(at, base):
                continue
            if proved:
                self._proved(placed, command, at, part)
            way = way_of(part.words) if part.head.partition(" ")[0] in PROGRAMS else None
            if way is None or (not proved and not way.own):
                continue
            if there is None:
                there = proved or is_there(output)
            if there:
                self._way(placed, command, way, at, part, proved)

    def _way(
        self, placed: OrderedEvent, command: _Command, way: ProjectCommand, at: str, part: Part, proved: bool
    ) -> None:
        """A command that does something to the whole project ran."""
        base = self._assert.top
        where = "" if way.anywhere or at == base else at.removeprefix(base + "/")
        form = f"{way.command} in {where}" if where else way.command
        if way.own:
            self._own.add(way.text)
            if tool := self._tools.pop(way.text, None):
                self._claim(placed, command, f"not {tool[1]}", "fact", tool[0], canonical_form=tool[1], denied=True)
        elif way.text in self._own:
            return
        self._runs[form] += 1
        if self._runs[form] != (1 if way.own else _SEVERAL):
            return
        text = f"{way.text} `{way.command}`" + (f", in `{where}`" if where else "")
        subject = canonical(way.text)
        about = f"{subject} {form}"
        if not way.own:
            self._tools.setdefault(way.text, (text, about))
        self._claim(
            placed, command, about, "fact", text, proved=proved, said=" ".join(part.words),
            canonical_form=about, subject=subject,
        )  # fmt: skip

    def _proved(self, placed: OrderedEvent, command: _Command, at: str, part: Part) -> None:
        """A part of a command that passed shows that a program is there, and what it is used for."""
        head = part.head
        program = head.split(" ", 1)[0]
        if program in _MANAGERS and f"manager {program}" not in self._claimed:
            if not _MANAGING.match(head) or {"-g", "--global"} & set(part.words):
                return
            text, subject = f"Packages are managed with {program}", f"{ONE_ANSWER}{_MANAGERS[program]}"
            self._claim(
                placed, command, f"manager {program}", "fact", text, proved=True, said=" ".join(part.words),
                canonical_form=program, subject=subject, polarity=1,
            )  # fmt: skip
        elif program == "gh":
            self._runs["gh"] += 1
            if self._runs["gh"] == _TWICE:
                text = "GitHub (pull requests, issues, runs) is worked on with `gh`, which is signed in"
                self._claim(placed, command, "gh", "fact", text, proved=True, said=" ".join(part.words))
            if head == "gh pr create":
                self._form(placed, command, "requests", True, " ".join(part.words[:3]))
        elif head == "git push" and any(_TO_MAIN.fullmatch(word) for word in part.words[2:]):
            self._form(placed, command, "requests", False)

    def _committed(self, placed: OrderedEvent, command: _Command) -> None:
        """The forms of commits and branches that a command made."""
        if not git_stays_in(command.text, command.began, self._assert.top):
            return
        # What stands in a string, or in a script that was written, is not run.
        heads = {part.head for part in parts_of(command.text)}
        subject = subject_of(command.text) if "git commit" in heads else ""
        if len(subject) >= SHORTEST_SUBJECT:
            typed = is_conventional(subject)
            self._form(placed, command, "conventional", typed, subject)
            self._form(placed, command, "plain", not typed, subject)
        if branch := _NEW_BRANCH.search(command.text):
            name = branch["name"]
            self._form(placed, command, "branches", _BY_KIND.fullmatch(name) is not None, name)

    def _form(self, placed: OrderedEvent, command: _Command, about: str, shown: bool, said: str = "") -> None:
        """A form that commits, branches or changes have, or that one of them lacks: each is asserted once."""
        claim = about if shown else f"not {about}"
        if claim not in self._claimed:
            text = _FORMS[about]
            self._claim(placed, command, claim, "pattern", text, said=said, denied=not shown)

    def _claim(
        self,
        placed: OrderedEvent,
        source: _Command,
        about: str,
        kind: InsightKind,
        text: str,
        *,
        said: str = "",
        proved: bool = False,
        canonical_form: str = "",
        subject: str = "",
        polarity: int = 0,
        denied: bool = False,
    ) -> None:
        """Assert the claim once, on the characters `said` of the source, or all of it."""
        if about in self._claimed:
            return
        self._claimed.add(about)
        form = canonical_form or canonical(text)
        start = source.text.find(said) if said else -1
        start, end = (start, start + len(said)) if start >= 0 else (0, len(source.text))
        span = quote(source.event.delivery_id, source.text, start, end, source.field)
        self._assert.add(
            InsightFound(
                id=fact_id(self._assert.stream, "insight_found", f"shown:{about}"),
                stream=self._assert.stream,
                occurred_at=placed.when,
                location=self._assert.home,
                subagent=placed.payload.subagent,
                evidence=(span, Span(placed.cite)) if proved else (span,),
                kind=kind,
                text=text,
                canonical=form,
                subject=subject or form,
                confidence=0.7,
                said_by=Provenance.TOOL,
                polarity=polarity,
                rule="shown",
                proved=proved,
                denied=denied,
            )
        )
