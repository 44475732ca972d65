"""Errors and what resolved them: a command fails, something is changed, and what had failed passes.

What counts as "what had failed": the same head, alone or in a chain, behind another `cd`; for tests a run that
includes the failed one; for compile errors anything that compiles. A call that was wrong itself (an option that does
not exist, another folder) is resolved by the right one.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from memctl.domain.events.facts import Edit, ErrorOccurred
from memctl.domain.failures.explanations import Explained, explanation_of, sentences
from memctl.domain.failures.signatures import hides_exit
from memctl.domain.shell.commands import (
    changes_of,
    heads_of,
    is_reading,
    parts_of,
    proves,
    runner_of,
    without_documents,
)
from memctl.domain.shell.directories import parts_where
from memctl.domain.support import patterns
from memctl.domain.support.remembered import remembered

OPEN = 64
"""Errors that stay open at most; of more, the oldest are given up."""

REACH = 400
"""Uses of tools after which an open error is given up."""

RETRY_REACH = 8
"""Uses of tools within which another way to call the same program resolves a wrong call."""

_BESIDE = 12
"""Errors of one run, at most, whose words are held against each other."""

_COMPILING = ("go compile", "rustc", "compile", "TS", "E0")
_CHECKED = ("golangci-lint", "biome", "ruff", "mypy", "lint", "markdownlint", "diagnostic")
_TREE = patterns.compile(
    r"(?:\S+ )*?git (?:-\S+ \S+ )*(?:checkout|switch|restore|reset|merge|rebase|pull|clean|cherry-pick|"
    r"revert|am|apply|rm|mv)\b"
)
_SLIGHT = patterns.compile(
    r"(?:\S+ )*?(?:git|mkdir|touch|kill|pkill|killall|export|chmod \+x /tmp|rm (?:-\w+ )*/tmp)\b"
)


class Step(NamedTuple):
    """Something that changed the world: an edit, or a command that changes things."""

    at: int
    edit: Edit | None
    ran: str


class OpenError(msgspec.Struct):
    """An error that nothing has resolved yet."""

    fact: ErrorOccurred
    command: str
    heads: tuple[str, ...]
    culprits: frozenset[str]
    """Heads of the failed command that may have printed it."""
    at: int
    """Uses of tools before it."""
    miscalled: bool
    began: str = ""
    """The directory in which the command began; empty where nothing showed it."""
    tokens: int = 0
    """Tokens that the session had spent before it."""
    gone: int | None = None
    """When a further run of its command no longer showed it."""


class Resolved(NamedTuple):
    """How an open error was resolved."""

    error: OpenError
    edits: tuple[Edit, ...]
    ran: tuple[str, ...]
    explanation: str
    approach: str


class Resolutions:
    """The open errors of a stream, and what happened since."""

    def __init__(self) -> None:
        self._open: list[OpenError] = []
        self._steps: list[Step] = []
        self._responses: list[Explained] = []

    def responded(self, at: int, text: str, *, thought: bool) -> None:
        if self._open and text:
            self._responses.append(Explained(at, text[:6_000], thought))
            del self._responses[:-200]

    def edited(self, at: int, edits: Iterable[Edit]) -> None:
        if self._open:
            self._steps.extend(Step(at, edit, "") for edit in edits)
            del self._steps[:-600]

    def ran(self, at: int, changes: Iterable[str]) -> None:
        """Commands that change things were run."""
        if self._open:
            self._steps.extend(Step(at, None, change) for change in changes)
            del self._steps[:-600]

    def is_open(self, signature: str) -> bool:
        return any(error.fact.signature == signature for error in self._open)

    def failed(
        self, at: int, command: str, errors: Sequence[ErrorOccurred], began: str = "", *, tokens: int = 0
    ) -> None:
        """A command failed and showed these errors: what it no longer shows is gone, though not proved. `began` is the
        directory in which it began; a `cd` in it may have led elsewhere by its end."""
        heads = heads_of(command)
        shown = {error.signature for error in errors}
        tests = {frame for error in errors if _is_test(error) for frame in error.frames}
        for known in self._open:
            if known.gone is not None or known.fact.signature in shown or known.culprits.isdisjoint(heads):
                continue
            # A test is not in order if it fails in other words, or if nothing was built and so nothing is reported.
            if not _is_test(known.fact) or (tests and tests.isdisjoint(known.fact.frames)):
                known.gone = at
        self._open.extend(
            OpenError(error, command, heads, _culprits(heads, error.error_types), at, is_miscall(error), began, tokens)
            for error in errors
        )
        del self._open[:-OPEN]

    def passed(self, at: int, command: str, began: str) -> list[Resolved]:
        """A command that began in a directory went well: what of the open errors that resolves."""
        if not self._open:
            return []
        heads = heads_of(command)
        found: list[Resolved] = []
        left: list[OpenError] = []
        for error in self._open:
            if at - error.at > REACH:
                continue
            resolved = self._resolve(error, at, command, heads, began)
            if resolved is None:
                left.append(error)
            else:
                found.append(resolved)
        self._open = left
        if not left:
            self._steps.clear()
            self._responses.clear()
        return found

    def _resolve(self, error: OpenError, at: int, command: str, heads: tuple[str, ...], began: str) -> Resolved | None:
        if error.miscalled and command.strip() != error.command.strip():
            return self._called_right(error, at, command, heads)
        if not covers(command, heads, error):
            return None
        until = at if error.gone is None else error.gone
        within = [step for step in self._steps if error.at < step.at <= until]
        edits = [step.edit for step in within if step.edit is not None]
        ran = _further_changes(within, error)
        if not edits and (moved := _moved(error, command, began)):
            return Resolved(error, (), (command,), self._explained(error, until), moved)
        if not edits and not ran:
            if error.gone is None and _as_much(command, error):
                error.gone = at  # by itself: what is changed from here on is for something else
            return None
        chosen = _chosen(_relevant(edits, error), error)
        changed_at = next((step.at for step in within if step.edit is not None or step.ran in ran), None)
        explanation = self._explained(error, until, changed_at)
        return Resolved(error, chosen, tuple(ran[:5]), explanation, _approach(explanation, chosen, ran))

    def _called_right(self, error: OpenError, at: int, command: str, heads: tuple[str, ...]) -> Resolved | None:
        """What another call of the same program, soon after a wrong one, resolves."""
        if at - error.at > RETRY_REACH or not set(heads) & set(error.heads):
            return None
        approach = f"ran `{_short(command)}` instead of `{_short(error.command)}`"
        return Resolved(error, (), (command,), self._explained(error, at), approach[:300])

    def _explained(self, error: OpenError, until: int, changed_at: int | None = None) -> str:
        said = [each for each in self._responses if error.at <= each.at <= until]
        beside = [o.fact for o in self._open if o.at == error.at and o.fact.signature != error.fact.signature]
        # What a linter says explains itself: words that do not name it are of something else.
        named = any(t.startswith(_CHECKED) for t in error.fact.error_types)
        return explanation_of(error.fact, said, changed_at, beside[:_BESIDE], named=named)


_MISCALL = patterns.compile(
    r"\[setup failed\]|no Go files in |go\.mod file not found|cannot find main module|does not contain (?:main module|"
    r"package)|directory not found|is not in std|Missing script|[Ss]cript not found|No rule to make target|"
    r"file or directory not found:|could not find `Cargo\.toml`|no (?:such )?(?:sub)?command|Cannot find path|"
    r"not a git repository",
)
"""What programs say that were called in the wrong place or by a name they do not know."""


def is_miscall(error: ErrorOccurred) -> bool:
    """Whether the call itself was wrong: an option, a name or a folder, and not what it was to work on."""
    return "usage" in error.error_types or _MISCALL.search(error.message) is not None


def _further_changes(steps: Iterable[Step], error: OpenError) -> list[str]:
    """Commands among steps that change something the error may depend on, and that the failed one did not run."""
    already = changes_of(error.command)
    return list(dict.fromkeys(s.ran for s in steps if s.ran and s.ran not in already and _matters(s.ran, error)))


def _is_test(error: ErrorOccurred) -> bool:
    return "test failure" in error.error_types


def _culprits(heads: tuple[str, ...], types: tuple[str, ...]) -> frozenset[str]:
    """Which heads of a failed command may have printed an error of these types."""
    heads = tuple(head for head in heads if not is_reading(head)) or heads
    if len(heads) < 2:
        return frozenset(heads)
    fitting: Iterable[str] = ()
    if "test failure" in types or "panic" in types:
        fitting = filter(runner_of, heads)
    elif any(t.startswith(_CHECKED) for t in types):
        fitting = (head for head in heads if proves(head) == "check" and not _formats(head))
    elif any(t.startswith(_COMPILING) for t in types):
        fitting = filter(proves, heads)
    elif any(t.startswith(("git", "conflict")) for t in types):
        fitting = (head for head in heads if head.startswith("git "))
    return frozenset(fitting) or frozenset(heads)


def _formats(head: str) -> bool:
    return "fmt" in head or "format" in head


_SCRIPTS = (
    "mise run",
    "make",
    "npm run",
    "pnpm run",
    "yarn run",
    "bun run",
    "just",
    "task",
    "rake",
    "npm test",
    "pnpm test",
    "yarn test",
    "bun test",
)


_SKIPS = patterns.compile(r"(?:^|\s)(?:--no-verify|HUSKY=0|SKIP=\S+|git commit -n)(?:\s|$)")
"""What leaves out the checks that failed."""


@remembered(256)
def _skips(command: str) -> bool:
    return _SKIPS.search(command) is not None


def covers(command: str, heads: tuple[str, ...], error: OpenError) -> bool:
    """Whether a passing run of `command` shows that what printed the error is in order."""
    culprits = error.culprits
    if _skips(command) and not _skips(error.command):
        return False
    if all(map(is_reading, error.heads)) or _SHELLS_OWN.match(error.fact.message):
        return _bare(command) == _bare(error.command)
    shared = culprits.intersection(heads)
    if _is_test(error.fact):
        return (bool(shared) or _runs_all_by_script(command, heads, culprits)) and _includes(command, error)
    if any(proves(head) for head in shared) or (shared and culprits.issubset(heads) and _alike(command, error)):
        return True
    if any(t.startswith(_COMPILING) for t in error.fact.error_types):
        programs = {head.split(" ")[0] for head in culprits}
        again = (head for head in heads if head.split(" ")[0] in programs and not _formats(head))
        return any(proves(head) in ("test", "build", "check") for head in again)
    return False


def _runs_all_by_script(command: str, heads: tuple[str, ...], culprits: frozenset[str]) -> bool:
    """Whether a script runs all tests where a runner failed that was called by itself."""
    scripted = any(runner_of(head) and head.startswith(_SCRIPTS) for head in heads)
    return scripted and "" not in map(runner_of, culprits) and not filters_of(command)


def _alike(command: str, error: OpenError) -> bool:
    """Whether the part that failed was run again: a subcommand or script by its name, a bare program much the same."""
    wanted = error.culprits
    again = [set(part.words) for part in parts_of(command) if part.head in wanted]
    before = [set(part.words) for part in parts_of(error.command) if part.head in wanted]
    named = any(" " in head or "." in head for head in wanted)
    if named and not _VAGUE.issuperset(error.fact.error_types):
        return True
    return any(len(a & b) * 2 > len(a | b) for a in again for b in before)


_VAGUE = frozenset(["error", "exit", "file"])
"""Types of errors whose program is not known well enough to judge what another call of it shows."""

_SHELLS_OWN = patterns.compile(r"(?:\(eval\)|(?:/\S*/)?(?:ba|z|da|k)?sh): ?(?:line )?\d+: ")
"""A redirection or the like that failed before any program ran."""


_AROUND = patterns.compile(r"^cd \S+ *(?:&&|;) *| 2>&1| *\|\| true| *\| *(?:head|tail|cat)\b[^|;&]*$")


@remembered(256)
def _bare(command: str) -> str:
    return _AROUND.sub("", command.strip()).strip()


_FILTER = patterns.compile(
    r"(?:\s-run[= ]|\s-k[= ]|\s-t[= ]|\s--grep[= ]|\s-g[= ]|--test-name-pattern[= ]|--testNamePattern[= ]|"
    r"--filter[= ]|--tests[= ]|::)(?:'([^']*)'|\"([^\"]*)\"|(\S+))"
)


@remembered(1024)
def filters_of(command: str) -> tuple[str, ...]:
    """The names of tests that a run was narrowed to."""
    found: list[str] = []
    for match in _FILTER.finditer(command):
        given = match[1] or match[2] or match[3] or ""
        found.extend(part for name in given.split("|") if (part := name.strip("^$()'\" ").split("/")[0]))
    return tuple(found)


def _includes(command: str, error: OpenError) -> bool:
    """Whether a run includes the failed test: it is not narrowed, or narrowed as the failed one, or names it."""
    narrowed = filters_of(command)
    if not narrowed or (set(filters_of(error.command)) <= set(narrowed) and filters_of(error.command)):
        return True
    names = " ".join(error.fact.frames)
    return any(name in names for name in narrowed) if names else True


def _as_much(command: str, error: OpenError) -> bool:
    """Whether a run surely looked at all that the failed one did, and shows how it ended."""
    if hides_exit(command):
        return False
    again = {word for part in parts_of(command) for word in part.words}
    before = {word for part in parts_of(error.command) if part.head in error.culprits for word in part.words}
    return again.issuperset(word for word in before if "/" in word or "." in word)


_NOT_THERE = patterns.compile(
    r"[Nn]o such file|[Nn]ot found|[Cc]annot find|[Cc]an't find|unknown revision or path|did not match any file|"
    r"not a git repository|outside repository|does not exist"
)
"""What is said of a path, where the folder may have been the wrong one."""


def _moved(error: OpenError, command: str, began: str) -> str:
    """How in one line, where what was not there was found from another folder; empty where the folder was the same."""
    if not _NOT_THERE.search(error.fact.message):
        return ""
    before, after = _place(error.command, error.began, error), _place(command, began, error)
    if not before or not after or before == after:
        return ""
    if before.startswith("/") != after.startswith("/"):
        return ""  # `C:/shop` is `/c/shop` to Git for Windows
    shared = posixpath.dirname(posixpath.commonpath((before, after)))
    there, here = (path[len(shared) :].lstrip("/") or path for path in (after, before))
    return f"ran it in `{there}` instead of `{here}`"[:300]


def _place(command: str, began: str, error: OpenError) -> str:
    """The directory in which a command ran what had failed; empty where that is uncertain."""
    return next((at for at, part in parts_where(command, began) if part.head in error.culprits), "")


def _matters(change: str, error: OpenError) -> bool:
    """Whether a command may have mended the error: git's own dealings and the like mend only errors of git."""
    if any(head.startswith("git ") for head in error.culprits) or not _SLIGHT.match(change):
        return True
    return bool(_TREE.match(change))


def _relevant(edits: Sequence[Edit], error: OpenError) -> Sequence[Edit]:
    """Where a check or a compiler named a file and that was edited, the edits of it."""
    if not any(t.startswith((*_COMPILING, *_CHECKED)) for t in error.fact.error_types):
        return edits
    named = [edit for edit in edits if any(_same_file(edit.path, path) for path in error.fact.files)]
    return named or edits


def _same_file(path: str, other: str) -> bool:
    other = other.removeprefix("./")
    return path == other or path.endswith(f"/{other}") or other.endswith(f"/{path}")


def _chosen(edits: Sequence[Edit], error: OpenError) -> tuple[Edit, ...]:
    """At most 8 edits: those of files that the error names first, then the latest, in order of time."""
    unique = list({(e.path, e.before, e.after): e for e in edits}.values())
    if len(unique) <= 8:
        return tuple(unique)
    named = {path.rpartition("/")[2] for path in error.fact.files}
    ranked = sorted(range(len(unique)), key=lambda i: (unique[i].path.rpartition("/")[2] not in named, -i))[:8]
    return tuple(unique[i] for i in sorted(ranked))


def _approach(explanation: str, edits: Sequence[Edit], ran: Sequence[str]) -> str:
    """How in one line: what was changed, and why where that was said; at most 300 characters."""
    paths = list(dict.fromkeys(edit.path.rpartition("/")[2] for edit in edits))
    what = []
    if paths:
        what.append("edited " + ", ".join(paths[:4]) + (f" and {len(paths) - 4} more" if len(paths) > 4 else ""))
    if ran:
        what.append("ran " + ", ".join(f"`{_short(change)}`" for change in ran[:2]))
    done = "; ".join(what)
    why = sentences(explanation)[:1]
    return (f"{why[0][:200].rstrip('.: ')} ({done})" if why else done)[:300]


_GOES_ON = ("&&", "|", ";", " do", " then")
"""How a line ends that the next one belongs to, beside a backslash."""


def _short(command: str) -> str:
    """A command on one line, without the bodies of its here-documents."""
    line = ""
    for each in without_documents(command).splitlines():
        if words := " ".join(each.split()):
            between = "; " if line and not line.endswith(_GOES_ON) else " "
            line = line[:-1] + words if line.endswith("\\") else (line + between + words).strip()
    return line if len(line) <= 80 else line[:79] + "…"
