"""Errors and what resolved them: a command fails, something is changed, and what had failed passes.

What counts as "what had failed": the same head, alone or in a chain, behind another `cd`, over the same things; for
tests a run that includes the failed one; for compile errors anything that compiles. It has to show how it ended, and
nothing of the error (`checks`). A call that was wrong itself (an option that does not exist, another folder) is
resolved by the right one.
"""

from __future__ import annotations

import posixpath
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import accumulate, islice, takewhile
from operator import attrgetter
from typing import NamedTuple

import msgspec

from memctl.domain.events.facts import Edit, ErrorOccurred
from memctl.domain.failures.explanations import Explained, explanation_of, names_of, sentences, why_of
from memctl.domain.failures.met_errors import standing_in
from memctl.domain.failures.signatures import hides_exit
from memctl.domain.failures.solutions import PROSE, CodeChange, changed_lines, names_within
from memctl.domain.failures.templates import COMPILING as _COMPILING
from memctl.domain.failures.templates import OPTION, plain
from memctl.domain.session.checks import Run, ended_well, looked_at, looks_at, may_hide, still_shows, targets_of
from memctl.domain.shell.changes import CommandChange, change_by, named_by, undone_by
from memctl.domain.shell.commands import (
    LONGEST,
    changes_of,
    formats,
    heads_of,
    is_reading,
    parts_of,
    proves,
    runner_of,
    without_documents,
)
from memctl.domain.shell.directories import ENTERING, bare, not_entered, parts_where
from memctl.domain.shell.programs import INTERPRETERS
from memctl.domain.support import patterns
from memctl.domain.support.remembered import remembered

OPEN = 32
"""Errors that stay open at most; of more, the oldest are given up."""

REACH = 400
"""Uses of tools after which an open error is given up."""

RETRY_REACH = 8
"""Uses of tools within which another way to call the same program resolves a wrong call."""

_NEVER = 1 << 62
"""Later than all uses of tools."""

MOST_STEPS, HELD = 600, 2_000
"""Steps that are kept, the newest; and those that are held against all open errors where a command goes well."""

_HEARD = 1_000_000
"""Characters of what the agent said, the newest, in which all open errors are looked for where a command goes well."""

_BESIDE = 12
"""Errors of one run, at most, whose words are held against each other."""

_CHECKED = ("golangci-lint", "biome", "ruff", "mypy", "lint", "markdownlint", "diagnostic")
_GIVES_UP = patterns.compile(r"(?:\S+ )*?git (?:.* )?--(?:abort|quit)\b")


class Step(msgspec.Struct):
    """Something that changed the world: an edit, or a command that changes things (`change` says which)."""

    at: int
    edit: Edit | None
    ran: str = ""
    change: CommandChange | None = None
    away: tuple[int, int] | None = None
    """From when, and until before when, git had taken it back, if it did."""

    def stands(self, until: int) -> bool:
        return self.away is None or not self.away[0] <= until < self.away[1]


class _Steps:
    """The newest steps, in order, and what git took back of them."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._stashed: tuple[int, int] | None = None
        """How the steps are away that the last stash took."""

    def edited(self, at: int, edits: Iterable[Edit]) -> None:
        self._steps.extend(Step(at, edit) for edit in edits)
        del self._steps[:-MOST_STEPS]

    def ran(self, at: int, change: str) -> None:
        """A command that changes something was run."""
        step = Step(at, None, change, change_by(change))
        if " stash pop" in change:
            self._bring_back(at)
        elif step.change is None or not step.change.undoes:
            self._steps.append(step)
            del self._steps[:-MOST_STEPS]
        elif (files := undone_by(change)) is not None:
            self._take_back((at, _NEVER), files, stash=" stash" in change)

    def within(self, since: int, until: int, most: int) -> list[Step]:
        """The steps after one use of a tool up to another whose changes stand then, of so many of the newest."""
        begin, end = (bisect_right(self._steps, at, key=attrgetter("at")) for at in (since, until))
        return [step for step in self._steps[max(begin, end - most) : end] if step.stands(until)]

    def clear(self) -> None:
        self._steps.clear()

    def _take_back(self, away: tuple[int, int], files: Sequence[str], *, stash: bool) -> None:
        names = frozenset(files)
        for step in self._steps:
            if step.stands(away[0]) and (
                not names or (step.edit is not None and not names.isdisjoint(named_by(step.edit.path)))
            ):
                step.away = away
        if stash:
            self._stashed = away

    def _bring_back(self, at: int) -> None:
        for step in self._steps:
            if step.away is not None and step.away == self._stashed:
                step.away = (step.away[0], at)
        self._stashed = None


class Spent(NamedTuple):
    """Tokens that a session had spent, and microseconds in which nobody had worked."""

    tokens: int = 0
    idle: int = 0


NOTHING_SPENT = Spent()


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
    spent: Spent = NOTHING_SPENT
    """Before it."""
    gone: int | None = None
    """When a further run of its command no longer showed it."""
    since: int = 0
    """When it was shown last: what was changed before did not mend it."""
    programs: frozenset[str] = frozenset()
    """Of the heads."""

    shown: str = ""
    """Its message and the files that it names."""

    @property
    def run(self) -> Run:
        """The command that failed."""
        return Run(self.command, self.began)


class Resolved(NamedTuple):
    """How an open error was resolved. `lead` is the error of the same run that the same change is said of, if another
    is."""

    error: OpenError
    edits: tuple[Edit, ...]
    ran: tuple[str, ...]
    explanation: str
    change: str
    """What was changed, run or called instead, in one line."""
    lead: OpenError | None = None
    instead: bool = False
    """Whether what ended it is that it was called otherwise, or from elsewhere."""

    @property
    def approach(self) -> str:
        """How in one line: the cause that the agent found, and the change."""
        why = "" if self.error.miscalled else why_of(self.explanation)
        return ": ".join(filter(None, (why, self.change)))


class Resolutions:
    """The open errors of a stream, and what happened since."""

    def __init__(self) -> None:
        self._open: list[OpenError] = []
        self._steps = _Steps()
        self._responses: list[Explained] = []

    def responded(self, at: int, text: str, *, thought: bool) -> None:
        if self._open and text:
            self._responses.append(Explained(at, text[:6_000], thought))
            del self._responses[:-200]

    def edited(self, at: int, edits: Iterable[Edit]) -> None:
        if self._open:
            self._steps.edited(at, edits)

    def ran(self, at: int, changes: Iterable[str]) -> None:
        """Commands that change things were run."""
        if self._open:
            for change in islice(changes, _MOST_RUN):
                self._steps.ran(at, change)

    def is_open(self, signature: str) -> bool:
        return any(error.fact.signature == signature for error in self._open)

    def failed(
        self, at: int, command: str, errors: Sequence[ErrorOccurred], began: str = "", *, spent: Spent = NOTHING_SPENT
    ) -> None:
        """A command failed and showed these errors: what it no longer shows is gone, though not proved. `began` is the
        directory in which it began; a `cd` in it may have led elsewhere by its end."""
        command = command[:LONGEST]
        heads = heads_of(command)
        shown = {error.signature for error in errors}
        tests = {frame for error in errors if _is_test(error) for frame in error.frames}
        for known in self._open:
            if known.fact.signature in shown:
                known.since, known.gone = at, None
            if known.gone is not None or known.fact.signature in shown or known.culprits.isdisjoint(heads):
                continue
            run, where = Run(command, began), known.culprits
            if not looks_at(run, where, known.fact, known.run, where) or may_hide(run, where, known.command):
                continue
            # A test is not in order if it fails in other words, or if nothing was built and so nothing is reported.
            if not _is_test(known.fact) or (tests and tests.isdisjoint(known.fact.frames)):
                known.gone = at
        self._open.extend(
            OpenError(
                error,
                command,
                heads,
                _culprits(heads, error.error_types),
                at,
                is_miscall(error),
                began,
                spent,
                since=at,
                programs=_programs(heads),
                shown=" ".join((error.message, *error.files)),
            )
            for error in errors
        )
        del self._open[:-OPEN]

    def passed(self, at: int, command: str, began: str, output: str = "") -> list[Resolved]:
        """A command that began in a directory went well: what of the open errors that resolves. What it still shows is
        not resolved, nor by what was changed before."""
        if not self._open:
            return []
        command, output = command[:LONGEST], plain(output)
        run, heads = Run(command, began, looked_at(output)), heads_of(command)
        programs, proving = _programs(heads), any(proves(head) or runner_of(head) for head in heads)
        found: list[Resolved] = []
        left: list[OpenError] = []
        for error in self._open:
            if at - error.at > REACH:
                continue
            if not error.culprits.isdisjoint(heads) and still_shows(output, error.fact):
                error.since, error.gone = at, None
                left.append(error)
                continue
            bears = proving or not error.programs or not error.programs.isdisjoint(programs)
            resolved = self._resolve(error, at, run, heads) if bears else None
            if resolved is None:
                left.append(error)
            else:
                found.append(resolved)
        self._open = left
        if not left:
            self._steps.clear()
            self._responses.clear()
        return _as_one(found)

    def _resolve(self, error: OpenError, at: int, run: Run, heads: tuple[str, ...]) -> Resolved | None:
        command, began = run.command, run.began
        if error.miscalled and (command.strip() != error.command.strip() or _moved(error, command, began)):
            return self._called_right(error, at, command, began)
        if respelled := _respelled(error, at, run):
            return Resolved(error, (), (command,), self._explained(error, at), respelled, instead=True)
        return self._by_change(error, at, run, heads) if covers(run, heads, error) else None

    def _by_change(self, error: OpenError, at: int, run: Run, heads: Iterable[str]) -> Resolved | None:
        """What was changed since, or where it was run instead, so that what had failed went well."""
        command, began = run.command, run.began
        until = at if error.gone is None else error.gone
        # Where many errors are open, each is held against fewer steps.
        within = self._steps.within(error.since, until, HELD // (1 + len(self._open)))
        within = [step for step in within if step.edit is None or not _is_beside(step.edit, error.fact)]
        edits = [(step.at, step.edit) for step in within if step.edit is not None]
        ran = _further_changes(within, error)
        # What the same command edits on its way elsewhere is not why it was found there.
        if all(when == at for when, _ in edits) and (moved := _moved(error, command, began)):
            return Resolved(error, (), (command,), self._explained(error, until), moved, instead=True)
        if _elsewhere(error, command, began):
            return None
        if not edits and not ran:
            if error.gone is None and _as_much(command, error):
                error.gone = at  # by itself: what is changed from here on is for something else
            return None
        if not self._may_mend(error, edits, ran, heads):
            return None
        last = max(step.at for step in within if step.edit is not None or step.ran in ran)
        found = self._mended(error, edits, ran, last)
        if found.change or not (otherwise := _called_otherwise(error, command)):
            return found
        return found._replace(change=otherwise, instead=True)

    def _may_mend(
        self, error: OpenError, edits: Sequence[tuple[int, Edit]], ran: Sequence[str], heads: Iterable[str]
    ) -> bool:
        """Whether changes may be why an error is gone. Where the agent says that it is none of this work's, or only
        another program went well, one must bear on what the error names: else nothing shows that it is mended."""
        same = error.culprits.issubset(heads)
        doubtful = ((edits or not same) and self._disowned(error)) or not (ran or same or _is_test(error.fact))
        return not doubtful or any(_is_of_error(edit, error.fact) for _, edit in edits)

    def _mended(self, error: OpenError, edits: Sequence[tuple[int, Edit]], ran: Sequence[str], last: int) -> Resolved:
        """How the changes up to the `last` mended an error, as the agent explained it before the first that bears on
        it."""
        about = names_of(error.fact)
        bearing = [(at, edit) for at, edit in edits if _bearing(edit, error.fact, about) >= BEARS]
        changes = [edit for _, edit in edits]
        explained = self._explained(error, (bearing[0][0] if bearing else last) - 1, [edit for _, edit in bearing])
        said = [each.text for each in self._responses if error.at <= each.at <= last][-MOST_SAID:]
        return _mended(error, changes, ran, explained, said)

    def _called_right(self, error: OpenError, at: int, command: str, began: str) -> Resolved | None:
        """What another call of the same program, soon after a wrong one, resolves: in another folder or other words."""
        shared = {head for head in set(heads_of(command)) & _refused(error) if not is_reading(head)}
        if at - error.at > RETRY_REACH or not shared or hides_exit(command.rpartition("\n")[2]):
            return None
        change = _moved(error, command, began) or _instead(error, command, shared)
        explained = self._explained(error, at) if change else ""
        return Resolved(error, (), (command,), explained, change, instead=True) if change else None

    def _disowned(self, error: OpenError) -> bool:
        """Whether the agent said of an error, by a name of it, that it was there before or is of something else."""
        about = {posixpath.basename(file) for file in error.fact.files} | names_of(error.fact, own=True)
        return any(
            any(name in sentence for name in about)
            for each in self._responses
            if each.at >= error.at
            for sentence in standing_in(each.text)
        )

    def _explained(self, error: OpenError, until: int, edits: Sequence[Edit] = ()) -> str:
        """What the agent said of an error before its last change: what comes after is of the next step."""
        said = [each for each in self._responses if error.at <= each.at <= until]
        sizes = accumulate(len(each.text) for each in reversed(said))
        heard = sum(1 for _ in takewhile((_HEARD // (1 + len(self._open))).__ge__, sizes))
        said = said[len(said) - heard :]
        beside = [o.fact for o in self._open if o.at == error.at and o.fact.signature != error.fact.signature]
        changed = "\n".join(f"{edit.before}\n{edit.after}" for edit in edits[:MOST_EDITS])
        others = any(o.fact.signature != error.fact.signature for o in self._open)
        return explanation_of(error.fact, said, beside[:_BESIDE], changed, alone=not others)


_WRONG_PLACE = (
    r"\[setup failed\]|no Go files in |go\.mod file not found|cannot find main module|does not contain (?:main module|"
    r"package)|directory not found|is not in std|Missing script|[Ss]cript not found|No rule to make target|"
    r"file or directory not found:|could not find `Cargo\.toml`|Cannot find path|not a git repository"
)
_MISCALL = patterns.compile(rf"{_WRONG_PLACE}|no (?:such )?(?:sub)?command|^(?:\(eval\):\d+: )?parse error near")
"""What programs say that were called in the wrong place or by a name they do not know, and zsh of a command that it
cannot read."""


def is_miscall(error: ErrorOccurred) -> bool:
    """Whether the call itself was wrong: an option, a name or a folder, and not what it was to work on."""
    return "usage" in error.error_types or _MISCALL.search(error.message) is not None


def _programs(heads: Iterable[str]) -> frozenset[str]:
    return frozenset(head.split(" ")[0] for head in heads)


def _refused(error: OpenError) -> AbstractSet[str]:
    """The heads of a wrong call that say the error, or were called with the word that it quotes; else all."""
    says = error.fact.message.partition(":")[0]
    words = {found[1].lstrip("-") for found in OPTION.finditer(error.fact.message) if "usage" in error.fact.error_types}
    parts = parts_of(error.command)
    heads = {part.head for part in parts if part.head.partition(" ")[0] == says} or {
        part.head for part in parts if not words.isdisjoint(word.lstrip("-") for word in part.words[1:])
    }
    return heads or set(error.heads)


def _further_changes(steps: Iterable[Step], error: OpenError) -> list[str]:
    """Commands among steps that change something the error may depend on, and that the failed one did not run."""
    already = changes_of(error.command)
    return list(dict.fromkeys(s.ran for s in steps if s.change and s.ran not in already and _matters(s.change, error)))


def _is_test(error: ErrorOccurred) -> bool:
    return "test failure" in error.error_types


def _culprits(heads: tuple[str, ...], types: tuple[str, ...]) -> frozenset[str]:
    """Which heads of a failed command may have printed an error of these types."""
    heads = tuple(head for head in heads if not is_reading(head)) or heads
    return frozenset(_fitting(heads, types) if len(heads) > 1 else ()) or frozenset(heads)


def _fitting(heads: tuple[str, ...], types: tuple[str, ...]) -> Iterable[str]:
    fitting: Iterable[str] = ()
    if "test failure" in types or "panic" in types:
        fitting = filter(runner_of, heads)
    elif any(t.startswith(_CHECKED) for t in types):
        fitting = (head for head in heads if proves(head) == "check" and not formats(head))
    elif any(t.startswith(_COMPILING) for t in types):
        fitting = filter(proves, heads)
    elif any(t.startswith(("git", "conflict")) for t in types):
        fitting = (head for head in heads if head.startswith("git "))
    elif any(map(_EXCEPTION.search, types)):
        fitting = (head for head in heads if head.partition(" ")[0] not in _WITHOUT_EXCEPTIONS)
    return fitting


_EXCEPTION = patterns.compile(r"^[A-Z]\w*(?:Error|Exception)$")
_WITHOUT_EXCEPTIONS = frozenset(["go", "gofmt", "golangci-lint", "cargo", "rustc", "gcc", "g++", "clang", "cc", "rm"])
"""Programs that print no error of a class."""

_FORMATTING = patterns.compile(r"fmt|format|prettier|\bgci\b|imports|space|indent|newline|\blll\b", patterns.I)


_OF_NODE = (f"{program} {what}" for program in ("npm", "pnpm", "yarn", "bun") for what in ("run", "test"))
_SCRIPTS = ("mise run", "make", "just", "task", "rake", *_OF_NODE)


_SKIPS = patterns.compile(r"(?:^|\s)(?:--no-verify|HUSKY=0|SKIP=\S+|git commit -n)(?:\s|$)")
"""What leaves out the checks that failed."""


@remembered(256)
def _skips(command: str) -> bool:
    return _SKIPS.search(command) is not None


def covers(run: Run, heads: tuple[str, ...], error: OpenError) -> bool:
    """Whether a run that went well shows that what printed the error is in order."""
    shared, test = error.culprits.intersection(heads), _is_test(error.fact)
    proving = shared or frozenset(filter(runner_of if test else proves, heads))
    compiles = not test and _compiles(heads, error)
    if (error.culprits and not proving and not compiles) or _avoids(run.command, error):
        return False
    shells_own = _SHELLS_OWN.match(error.fact.message) and not not_entered(error.fact.message)
    if all(map(is_reading, error.heads)) or shells_own:
        return _bare(run.command) == _bare(error.command)
    again = _tests_again(run, heads, proving, error) if test else compiles or _calls_again(run.command, heads, error)
    if not again:
        return False
    looks = looks_at(run, proving, error.fact, error.run, error.culprits) or _moved(error, run.command, run.began)
    return bool(looks) and ended_well(run, proving, error.command)


def _avoids(command: str, error: OpenError) -> bool:
    """Whether a command went well because it left out what had failed, or gave it up."""
    if _skips(command) and not _skips(error.command):
        return True
    return _GIVES_UP.match(command) is not None and any(head.startswith("git ") for head in error.culprits)


def _tests_again(run: Run, heads: tuple[str, ...], proving: AbstractSet[str], error: OpenError) -> bool:
    """Whether a run includes a failed test: by the same program, or by another that is given its file or runs all."""
    named = " ".join((*error.fact.files, *error.fact.frames))
    return (
        not error.culprits.isdisjoint(heads)
        or any(posixpath.basename(target) in named for target in targets_of(run, proving))
        or _runs_all_by_script(run.command, heads, error.culprits)
    ) and _includes(run.command, error)


def _calls_again(command: str, heads: tuple[str, ...], error: OpenError) -> bool:
    """Whether what failed was called again, or a check or build of the same name was."""
    shared = error.culprits.intersection(heads)
    return any(map(proves, shared)) or (bool(shared) and error.culprits.issubset(heads) and _alike(command, error))


def _compiles(heads: tuple[str, ...], error: OpenError) -> bool:
    """Whether another subcommand compiles what the failed one did: a build does not look at tests, nor at what a check
    does. What runs TypeScript does not look at its types."""
    if not any(t.startswith(_COMPILING) for t in error.fact.error_types):
        return False
    programs = _programs(error.culprits)
    again = [head for head in heads if head.split(" ")[0] in programs and not formats(head)]
    if any(t.startswith("TS") for t in error.fact.error_types):
        return any(_TYPES.search(head) for head in again)
    kinds = {proves(head) for head in again}
    built_alone = "check" in map(proves, error.culprits) or any(map(_TEST_FILE.search, error.fact.files))
    return bool(kinds & ({"test", "check"} if built_alone else {"test", "check", "build"}))


_TEST_FILE = patterns.compile(r"[_.-](?:test|spec)s?\.\w+\z")
_TYPES = patterns.compile(r"\btsc\b|type-?check|compile|check-?types")


def _runs_all_by_script(command: str, heads: tuple[str, ...], culprits: frozenset[str]) -> bool:
    """Whether a script runs all tests where a runner failed that was called by itself."""
    scripted = any(runner_of(head) and head.startswith(_SCRIPTS) for head in heads)
    return scripted and "" not in map(runner_of, culprits) and not filters_of(command)


def _alike(command: str, error: OpenError) -> bool:
    """Whether the part that failed was run again: a subcommand or script by its name, a bare program much the same;
    a script in the command itself word for word."""
    wanted = error.culprits
    inline = (p for p in parts_of(error.command) if p.head in wanted and p.head.split(" ")[0] in _INTERPRETERS)
    if any(len(part.words) == 1 or not _INLINE.isdisjoint(part.words[1:4]) for part in inline):
        return _bare(command) == _bare(error.command)
    named = any(" " in head or "." in head for head in wanted)
    if named and not _VAGUE.issuperset(error.fact.error_types):
        return True
    return _has_much_the_same(command, error.command, wanted)


@remembered(1024)
def _has_much_the_same(command: str, other: str, heads: frozenset[str]) -> bool:
    """Whether a part of each that begins so has most of its words in common with one of the other's."""
    one, another = (
        tuple(islice({frozenset(part.words): None for part in parts_of(each) if part.head in heads}, _COMPARED))
        for each in (command, other)
    )
    return any(len(a & b) * 2 > len(a | b) for a in one for b in another)


_COMPARED = 16
"""Parts of each of two commands that are compared word by word."""


_INTERPRETERS = INTERPRETERS | {"bun"}
_INLINE = frozenset(["-c", "-e", "-p", "--eval", "-lc", "-", "-Command", "-command"])
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
    rf"{_WRONG_PLACE}|[Nn]o such file|[Nn]ot found|[Cc]annot find|[Cc]an't find|unknown revision or path|"
    r"did not match any file|outside repository|does not exist"
)
"""What is said of a path, where the folder may have been the wrong one."""


def _moved(error: OpenError, command: str, began: str) -> str:
    """How in one line, where what was not there was found from another folder; empty where the folder was the same."""
    if not _NOT_THERE.search(error.fact.message) or any(t.startswith("TS") for t in error.fact.error_types):
        return ""  # a name that TypeScript does not find is no file
    barred = not_entered(error.fact.message)
    before, after = _place(error.command, error.began, error), _place(command, began, error)
    if not before or not after or (before == after and not barred):
        return ""
    if barred:
        entered = {bare(word) for part in parts_of(command) if part.head in ENTERING for word in part.words[1:]}
        return "" if barred & entered else f"ran it without `cd {min(barred)}`"[:300]  # it may have stood there before
    if before.startswith("/") != after.startswith("/"):
        return ""  # `C:/shop` is `/c/shop` to Git for Windows
    shared = posixpath.dirname(posixpath.commonpath((before, after)))
    there, here = (path[len(shared) :].lstrip("/") or path for path in (after, before))
    return f"ran it in `{there}` instead of `{here}`"[:300]


def _instead(error: OpenError, command: str, shared: AbstractSet[str]) -> str:
    """How in one line a call differs from the failed one; empty where it does not, or is of what a session tries."""
    works, failed = _call(command, shared), _call(error.command, shared)
    return "" if works == failed or _SCRATCH.search(f"{works} {failed}") else f"ran `{works}` instead of `{failed}`"


def _called_otherwise(error: OpenError, command: str) -> str:
    """How in one line the failed call itself was mended, where it was to prove nothing."""
    shared = error.culprits.intersection(heads_of(command))
    proved = not shared or any(proves(h) or h.startswith("git ") for h in shared)
    return "" if proved else _instead(error, command, shared)


def _respelled(error: OpenError, at: int, run: Run) -> str:
    """How in one line, where a program soon after did not ask for the path any more that was not there, but for one of
    the same name; empty where it did, or was another."""
    shared = {head for head in error.culprits.intersection(heads_of(run.command)) if not is_reading(head)}
    if at - error.at > RETRY_REACH or not shared or not _NOT_THERE.search(error.fact.message):
        return ""
    asked, asks = (
        {bare(word) for part in parts_of(command) if part.head in shared for word in part.words[1:]}
        for command in (error.command, run.command)
    )
    absent = {word for word in asked if "/" in word and word in error.fact.message} - asks
    names = set(map(posixpath.basename, absent))
    again = not names.isdisjoint(map(posixpath.basename, asks - asked)) and ended_well(run, shared, error.command)
    return _instead(error, run.command, shared) if absent and again else ""


def _elsewhere(error: OpenError, command: str, began: str) -> bool:
    """Whether a command looked at another part of the project than the failed one: neither directory holds the other,
    and both lie in the directory that the session was in."""
    before, after = _place(error.command, error.began, error), _place(command, began, error)
    if not before or not after or after in (before, error.began):
        return False
    shared = posixpath.commonpath((before, after)) if before.startswith("/") == after.startswith("/") else ""
    return shared not in ("", before, after) and len(shared) >= len(posixpath.dirname(error.began))


def _place(command: str, began: str, error: OpenError) -> str:
    """The directory in which a command ran what had failed; empty where that is uncertain."""
    barred = not_entered(error.fact.message) if command == error.command else frozenset()
    return next((at for at, part in parts_where(command, began, barred) if part.head in error.culprits), "")


_MOST_RUN = 16
"""Parts of one command that change something, of which one may be what mends an error."""


def _matters(change: CommandChange, error: OpenError) -> bool:
    """Whether a command may have mended the error: git's own dealings and the like mend only errors of git, and what
    only moves or removes files mends only an error that names one of them, unless anything is built from them."""
    if change.moved is not None:
        return any(path in error.shown for path in change.moved)
    if change.formats:
        return _FORMATTING.search(" ".join((*error.fact.error_types, error.fact.message))) is not None
    return not change.slight or any(head.startswith("git ") for head in error.culprits)


_SCRATCH = patterns.compile(r"/(?:tmp|[Tt]emp)/|\bscratchpad/|/dev/stdin")
"""Where only what a session tries for itself lies."""


def _mended(
    error: OpenError, edits: Sequence[Edit], ran: Sequence[str], explanation: str, said: Sequence[str]
) -> Resolved:
    """The edits that bear on the error first, then the latest; and in one line the change that bears on it, else the
    commands, else the only change. What was only taken out shows no way, unless it was explained. `said`: the agent's
    words meanwhile."""
    unique, names = _standing(edits, error.fact), names_of(error.fact)
    about = names | names_within(explanation)
    points = {edit: _bearing(edit, error.fact, about, explanation) for edit in unique}
    own = {edit: _bearing(edit, error.fact, names) for edit in unique} if explanation else points
    ranked = sorted(unique, key=lambda e: (points[e] < BEARS, own[e] < BEARS, -points[e]))
    bearing = points[ranked[0]] if ranked else 0
    mending = [f"`{_short(each)}`" for each in ran if not _only_writes(each, error)][:2] if bearing < BEARS else []
    change = f"ran {', '.join(mending)}" if mending else ""
    alone = len(unique) == 1 and not mending and _is_of(unique[0], error, explanation, said)
    if alone or (bearing >= BEARS and _is_clear(error.fact, ranked, [points[each] for each in ranked], explanation)):
        first, own_names = ranked[0], _naming(ranked[0], error.fact)
        shown = [first, *islice((each for each in ranked[1:] if _belongs_to(each, first)), 1)]
        sides = (CodeChange(each.path, each.before, each.after) for each in shown)
        parts = [part for each in sides if (part := changed_lines(each, about, own_names))]
        change = "; ".join(parts) if explanation or not all(part.startswith("removed ") for part in parts) else ""
    return Resolved(error, tuple(ranked[:MOST_EDITS]), tuple(ran[:5]), explanation, change)


def _is_clear(error: ErrorOccurred, ranked: Sequence[Edit], points: Sequence[int], explanation: str) -> bool:
    """Whether the first of several changes, ranked by how much each has to do with an error, is known to have mended
    it: the agent explained it, it alone has most to do with it, or it has more to do with it than its file. That of a
    failed test is known only where it is the one change that bears on the test, and no change of the test itself."""
    if explanation:
        return True
    if _is_test(error):
        return not any(point >= BEARS for point in points[1:]) and not _is_own_test(ranked[0], error)
    return len(ranked) < 2 or points[0] > points[1] or points[0] > _IN_FILE


def _is_own_test(edit: Edit, error: ErrorOccurred) -> bool:
    """Whether an edit changes what a failed test expects, and not what it tests."""
    return _is_test(error) and (_is_named(edit, error) or _TEST_FILE.search(edit.path) is not None)


def _standing(edits: Sequence[Edit], error: ErrorOccurred) -> list[Edit]:
    """The newest edits, latest first, each once and without those that a later one took out again. Where what was
    changed at the error was not seen, nothing else is shown in its place."""
    unique = list({(e.path, e.before, e.after): e for e in reversed(edits)}.values())[:MOST_RANKED]
    unique = [edit for at, edit in enumerate(unique) if not any(_replaces(later, edit) for later in unique[:at])]
    named = [edit for edit in unique if _is_named(edit, error)]
    return unique if all(edit.before or edit.after for edit in named) else named


def _is_of(edit: Edit, error: OpenError, explanation: str, said: Sequence[str]) -> bool:
    """Whether the only change between a failing and a passing run is why: of a test that the agent explained, of a
    script that the command calls, one that names something of the error or of what the agent said of it, or one that
    the agent announced. What names nothing of the change (a timeout, a missing package, an exit code) may have passed
    by itself."""
    about = names_of(error.fact, own=True) | names_within(" ".join((*error.fact.files, explanation)))
    file, touched = posixpath.basename(edit.path), _touched(edit)
    if not explanation and _is_own_test(edit, error.fact):
        return False
    if file in error.command or not about.isdisjoint(touched):
        return True
    announced = (each for text in said if file in text for each in sentences(text) if file in each)
    return bool(_is_test(error.fact) and error.fact.frames) and (
        bool(explanation) or any(not touched.isdisjoint(names_within(each)) for each in announced)
    )


_WRITING = frozenset(("sed", "perl", "patch", "apply_patch", "dd"))
_OF_GIT = frozenset(
    f"git {name}" for name in ("add", "commit", "checkout", "restore", "reset", "stash", "push", "apply")
)
"""Programs that only write what the session was at: as an edit that nobody explained, they mend no other session's."""


def _only_writes(command: str, error: OpenError) -> bool:
    """Whether a command only wrote files, or kept them with git where it was not git that failed."""
    of_git = any(kind.startswith(("git", "conflict")) for kind in error.fact.error_types)
    writing = _WRITING if of_git else _WRITING | _OF_GIT
    return writing.issuperset(heads_of(command))


def _as_one(found: Sequence[Resolved]) -> list[Resolved]:
    """What one change ended of one run is one fix: that of the first error that was explained, or else the first."""
    leads: dict[tuple[object, ...], Resolved] = {}
    for each in sorted(found, key=lambda each: not each.explanation):
        leads.setdefault(_change_of(each), each)
    return [each if (lead := leads[_change_of(each)]) is each else each._replace(lead=lead.error) for each in found]


def _change_of(resolved: Resolved) -> tuple[object, ...]:
    return (resolved.error.since, resolved.edits[:1], resolved.ran if not resolved.edits else ())


MOST_SAID = 4
"""Answers before a change in which the agent may have announced it, the newest."""

MOST_EDITS, MOST_RANKED = 8, 40
"""Edits that are kept of what mended an error, and of which those are chosen."""

_LONG_NAME = 8
"""Characters from which the name of a test is no everyday word."""

BEARS, _IN_FILE = 2, 3
"""From here on an edit has to do with an error; what its being in the file that the error names counts."""


def _bearing(edit: Edit, error: ErrorOccurred, about: AbstractSet[str], said: str = "") -> int:
    """How much an edit has to do with an error: it took out the line that the tool pointed at, lies in a file that the
    error names or that its test is of, puts in the rule of a linter, changes lines that name what the error does, or
    is what the agent `said` of it. Names that it shares beside count for nothing by themselves."""
    pointed = bool(error.code) and error.code.strip() in edit.before
    named = _is_named(edit, error)
    if error.files and not named and any(t.startswith(_CHECKED) for t in error.error_types):
        return 0  # a linter says where
    if any(kind.startswith("conflict") for kind in error.error_types) and "<<<<<<<" not in edit.before:
        return 0  # what is changed beside the marks of a conflict does not settle it
    if any(kind.endswith("/format") for kind in error.error_types):
        one, other = ("".join(filter(str.isalnum, side)) for side in (edit.before, edit.after))
        if one != other:
            return 0  # what is only put into another form says the same
    touched, after = _touched(edit), names_within(edit.after)
    ruled = any(kind.rpartition("/")[2].lower() in touched & after for kind in error.error_types)
    shared = min(len(_naming(edit, error) & touched), 3)
    points = 8 * pointed + _IN_FILE * (named or _is_tested(edit, error)) + 6 * ruled + 2 * shared
    if said and not points and (posixpath.basename(edit.path) in said or len(names_within(said) & touched) >= BEARS):
        points = BEARS
    return points + min(len(names_within(f"{edit.before}\n{edit.after}") & about), 4) if points else 0


def _is_of_error(edit: Edit, error: ErrorOccurred) -> bool:
    """Whether an edit has to do with an error by what the error itself says, whatever was said of it."""
    return _is_named(edit, error) or _bearing(edit, error, names_of(error)) >= BEARS


def _is_tested(edit: Edit, error: ErrorOccurred) -> bool:
    """Whether an edit is of the file that a failed test is of, by its name or by the name of the test in it."""
    stem = _STEM.sub("", posixpath.basename(edit.path))
    return _is_test(error) and any(
        stem == _STEM.sub("", posixpath.basename(path))
        or any(len(name) >= _LONG_NAME and name in edit.before for name in path.split("/"))
        for path in (*error.files, *error.frames)
    )


_STEM = patterns.compile(r"\Atest_|(?:[_.-](?:test|spec)s?)?\.\w+(?:::.*)?\z")
"""What sets the name of a test's file apart from that of what it tests."""


def _naming(edit: Edit, error: ErrorOccurred) -> frozenset[str]:
    """The names by which the lines of an edit are known that an error is about: what it quotes, or what is written like
    a symbol in its message. A failed test's message stands in the test itself, where it shows nothing."""
    if _is_test(error) and (_is_named(edit, error) or _A_TEST.search(f"{edit.before}\n{edit.after}")):
        return frozenset()
    return names_of(error, own=True) - names_within(" ".join((*error.files, *error.error_types, *error.frames)))


@remembered(64)
def _touched(edit: Edit) -> frozenset[str]:
    """The names in the lines that an edit changed."""
    before, after = dict.fromkeys(edit.before.splitlines()), dict.fromkeys(edit.after.splitlines())
    changed = [*(line for line in before if line not in after), *(line for line in after if line not in before)]
    return names_within("\n".join(changed))


def _belongs_to(edit: Edit, other: Edit) -> bool:
    """Whether two edits are one fix: the one only adds a name that the other puts in place of something."""
    adds = [set(each.before.splitlines()) <= set(each.after.splitlines()) for each in (edit, other)]
    return adds[0] != adds[1] and not _new_symbols(edit.before, edit.after).isdisjoint(
        _new_symbols(other.before, other.after)
    )


@remembered(64)
def _new_symbols(before: str, after: str) -> frozenset[str]:
    return frozenset(_SYMBOL.findall(after)).difference(_SYMBOL.findall(before))


_SYMBOL = patterns.compile(r"\w*(?:[a-z][A-Z]|\w_\w)\w*")


def _is_beside(edit: Edit, error: ErrorOccurred) -> bool:
    """Whether an edit is of a document that an error neither names nor was looked for in."""
    looked_for = any(kind.startswith(_CHECKED) or kind.startswith("conflict") for kind in error.error_types)
    return edit.path.endswith(PROSE) and not looked_for and not _is_named(edit, error)


def _is_named(edit: Edit, error: ErrorOccurred) -> bool:
    said = _FILE.findall(error.message) if posixpath.basename(edit.path) in error.message else ()
    return any(_same_file(edit.path, path.rstrip(".")) for path in (*error.files, *said))


_FILE = patterns.compile(r"[\w.@+~/\\-]+")


_A_TEST = patterns.compile(
    r"\b(?:func|def|fn|function) +([Tt]est\w+)|\b(?:it|test|describe)(?:\.\w+)?\( *[\"'`]([^\"'`\n]{3,200})[\"'`]"
)


def _replaces(later: Edit, earlier: Edit) -> bool:
    if later.path != earlier.path:
        return False
    put_in = set(earlier.after.splitlines()) - set(earlier.before.splitlines())
    gone = set(later.before.splitlines()) - set(later.after.splitlines())
    return bool(put_in) and put_in <= gone


def _same_file(path: str, other: str) -> bool:
    other = other.removeprefix("./")
    return path == other or path.endswith(f"/{other}") or other.endswith(f"/{path}")


def _call(command: str, heads: AbstractSet[str]) -> str:
    """A command as it was called; of a long one the parts that have these heads."""
    whole = _short(command, 10_000)
    if len(whole) > LONGEST_CALL:
        heads = heads | set(ENTERING)
        whole = "; ".join(" ".join(part.words) for part in parts_of(command) if part.head in heads) or whole
    return _short(whole)


_GOES_ON = ("&&", "|", ";", " do", " then")
"""How a line ends that the next one belongs to, beside a backslash."""


LONGEST_CALL = 80
"""Characters of a command that is shown."""


def _short(command: str, longest: int = LONGEST_CALL) -> str:
    """A command on one line, without the bodies of its here-documents."""
    line = ""
    for each in without_documents(command).splitlines():
        if len(line) > longest + 1:  # a backslash at its end may still go
            break
        if words := " ".join(each.split()):
            between = "; " if line and not line.endswith(_GOES_ON) else " "
            line = line[:-1] + words if line.endswith("\\") else (line + between + words).strip()
    return line if len(line) <= longest else line[: longest - 1] + "…"
