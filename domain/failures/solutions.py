"""Solutions of a bug pattern: attempts that resolved it, alike ones taken together, each with its success rate.

A row keeps its newest attempts; solutions are computed from those in order of time, so that neither the merging nor
the rate depends on the order of arrival.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from posixpath import basename, commonprefix
from string import ascii_lowercase, digits
from typing import NamedTuple

import msgspec
from rapidfuzz import fuzz

from memctl.domain.events.facts import EXCERPT, Edit, quote_hash
from memctl.domain.shell.programs import words_of
from memctl.domain.support import patterns
from memctl.domain.support.bounded import Seen, one_line
from memctl.domain.support.outcomes import KeptOutcome, moving_average
from memctl.domain.support.remembered import remembered
from memctl.domain.support.text import Runs

ALIKE = 80.0
"""Similarity of two approaches (rapidfuzz token set ratio, 0 to 100) from which they are one solution."""

ALIKE_ON_SAME_FILES = 55.0
"""The same, where both edited the same files."""


class Attempt(msgspec.Struct, frozen=True):
    """One resolution: when it passed, how in one line, and which files were edited. Refuted when it did not last.

    `hunks` are digests of its edits: the same change in another file, or by another session, has the same.
    """

    at: int
    id: str
    approach: str
    files: tuple[str, ...] = ()
    hunks: tuple[str, ...] = ()
    lineage: str = ""
    """What its session shares with copies and forks of it."""
    only: str = ""
    """Where it is another call: the only message that it is a way out of (`only_of`)."""


def only_of(message: str) -> str:
    """Digest (8 hex digits) of a message with all that it names, wherever on the machine that lies."""
    return quote_hash(_FOLDERS.sub("", one_line(message, 160)))[:8]


_FOLDERS = patterns.compile(r"(?:^|[^\w.~@+:/\\-])(?:~|[A-Za-z]:)?[/\\](?:[^\s'\"`:/\\]+[/\\])*")
"""The directories of an absolute path."""


HUNKS = 6


def hunks_of(edits: Sequence[Edit], ran: Sequence[str] = ()) -> tuple[str, ...]:
    """Digests (8 hex digits) of edits by what they took out and put in, white space folded, none of slight ones; of the
    commands that were run where nothing was edited."""
    contents = [f"{' '.join(edit.before.split())}\0{' '.join(edit.after.split())}" for edit in edits]
    contents = (
        [each for each in contents if len(each) > _TRIVIAL] if edits else [" ".join(command.split()) for command in ran]
    )
    return tuple(sorted({quote_hash(each)[:8] for each in contents})[:HUNKS])


_TRIVIAL = 12
"""Characters above which two equal edits are no chance: a lone brace is put in everywhere."""


class CodeChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """An edit of an attempt, cut to what shows the idea."""

    path: str
    before: str = ""
    after: str = ""


class Detail(msgspec.Struct, frozen=True):
    """What an attempt consisted of; kept for fewer attempts than their approach is."""

    at: int
    id: str
    explanation: str = ""
    edits: tuple[CodeChange, ...] = ()
    command: str = ""
    message: str = ""
    """Of the error that it resolved."""


class Solution(msgspec.Struct, frozen=True):
    """Attempts of one kind. `success_rate` is a moving average that starts at 0.5; times in microseconds."""

    approach: str
    description: str
    """Why it works, in the agent's words."""
    edits: tuple[CodeChange, ...]
    files: tuple[str, ...]
    conditions: tuple[str, ...]
    uses: int
    successes: int
    success_rate: float
    first_used: int
    last_used: int
    attempts: tuple[str, ...]


def solutions_of(
    attempts: tuple[Attempt, ...], details: tuple[Detail, ...], refuted: tuple[Seen, ...], conditions: tuple[str, ...]
) -> tuple[Solution, ...]:
    """Attempts grouped by likeness, best first: by success rate, then uses, then the last use.

    `refuted` names the attempts after which the same error came back.
    """
    failed = {r.name for r in refuted}
    by_id = {d.id: d for d in details}
    groups: list[tuple[_Compared, list[Attempt]]] = []
    for attempt in _each_once(attempts, failed):
        compared = _compared(attempt)
        home = next((group for first, group in groups if _alike(first, compared)), None)
        if home is None:
            groups.append((compared, [attempt]))
        else:
            home.append(attempt)
    found = [_solution(group, by_id, failed, conditions) for _, group in groups]
    found.sort(key=lambda s: (-s.success_rate, -s.uses, -s.last_used, s.attempts))
    return tuple(found)


def _each_once(attempts: tuple[Attempt, ...], failed: set[str]) -> list[Attempt]:
    """The attempts in order of time. One that copies and forks of a session repeat is one, refuted where one of them
    was."""
    kept: dict[tuple[str, int], Attempt] = {}
    for attempt in sorted(attempts, key=lambda a: (a.at, a.id)):
        same = (attempt.lineage or attempt.id, attempt.at)
        if same not in kept or attempt.id in failed:
            kept[same] = attempt
    return sorted(kept.values(), key=lambda a: (a.at, a.id))


CHANGED = 90
"""Characters of each side of a change that are shown."""


def lesson_of(solution: Solution) -> str:
    """What the solution teaches in one line: why it works, what was changed, or the command that was run.

    Empty where it installs, downloads or widens rights: an error message can ask for that, and an agent that obeyed
    once is no proof that it was right.
    """
    after = "\n".join(change.after for change in solution.edits)
    return "" if is_risky(f"{solution.approach}\n{solution.description}\n{after}") else solution.approach


def is_risky(text: str) -> bool:
    """Whether commands in a text would install, download or widen rights: nobody is given them unasked."""
    return _RISKY.search(text) is not None


_RISKY = patterns.compile(
    r"https?://|--(?:extra-)?index(?:-url)?\b|--registry\b|--trusted-host\b|\b(?:curl|wget|sudo|chmod|chown|setfacl)\b|"
    r"\b(?:pip3?|pipx|uv|conda|poetry|npm|pnpm|yarn|bun|gem|brew|apt|apt-get|dnf|yum|apk|cargo|go|composer|mise|asdf)"
    r"(?: -\S+)* (?:tool )?(?:pip )?(?:install|add|get|i|ci|use|download)\b|\b(?:npx|bunx|uvx|pipx run)\b|"
    r"\bpip3?\.\d+ install\b|\b(?:pdm|rye|helm|winget|scoop|choco|snap|port|flatpak|luarocks|opam|cabal|stack|"
    r"hex|vcpkg|conan|nimble|dart pub|flutter pub|dotnet|nuget|kubectl krew|code|codium)(?: -\S+)*"
    r" (?:(?:tool )?(?:install|add)(?: package)?|--install-extension)\b|--install-extension\b|\binstall\.packages\b|"
    r"\b(?:easy_install|cpanm?|pacman -S\w*|emerge|doas|setcap|irm|iwr|invoke-webrequest|aria2c|scp|sftp)\b|"
    r"\brsync \S*:|"
    r"\b(?:pnpm|yarn|npm|bun) (?:dlx|exec|x)\b|\bdeno (?:run|install)\b|\bnix(?:-shell| run| profile)\b|"
    r"\bgo run \S+@|\b(?:docker|podman) (?:run|pull)\b|\bkubectl (?:apply|create)\b|"
    r"\bgit (?:clone|submodule add|remote add)\b|"
    r"\bgit config\b.{0,40}\b(?:hookspath|insteadof|sshcommand|fsmonitor|pager|editor)\b|\bcore\.hookspath\b|"
    r"\b(?:npm|pip3?|yarn|pnpm) config set\b|\b\w+_(?:INDEX_URL|REGISTRY|PROXY)=|\burlopen\b|\burllib\.request\b|"
    r"\b(?:nc|ncat|telnet) \S+ \d+|\bssh \S+\.\S+ |\b(?:\w*'')+\w*url\b|\bgit@[\w.-]+:|\b(?:ssh|git|ftp)://",
    patterns.I,
)


_NAMES = Runs(f"{ascii_lowercase}{digits}_")
_EVERYBODYS = words_of(
    "this that with from error failed test tests expected have could return value values type types function method "
    "should must when line lines file files code string strings make name names errors issue issues variable variables "
    "functions methods types linter"
)


@remembered(256, longest=16_384)
def names_within(text: str) -> frozenset[str]:
    """The names that a text holds, in small letters, without everybody's words."""
    runs = (run.lstrip(digits) for run in _NAMES.within(text.lower()))
    return frozenset(name for name in runs if len(name) > 3) - _EVERYBODYS


def changed_lines(
    change: CodeChange, about: AbstractSet[str] = frozenset(), own: AbstractSet[str] = frozenset()
) -> str:
    """The lines in which the two sides differ, from the one on that names most of what it is `about`, best what is the
    error's `own`; of a conflict, which side was kept. Empty where nothing of the difference was kept, and of a conflict
    that was merged by hand."""
    before, after = ([" ".join(line.split()) for line in side.splitlines()] for side in (change.before, change.after))
    whole = max(len(change.before), len(change.after)) < EXCERPT
    if any(map(_marks, before)):
        settled = _settled(before, after) if whole else ""
        return f"{settled} in {basename(change.path)}" if settled else ""
    sides = _differing(before, after, prose=change.path.endswith(PROSE))
    gone, new = (_from_the_point(side, about, own) for side in sides)
    if not _WORD.search(gone + new) or (not new and len(change.after) >= EXCERPT):
        return ""  # what seems to be gone may stand in what was cut
    # Of long lines that begin alike, where they part.
    alike = gone[: len(commonprefix((gone, new)))].rfind(" ", 0, -CONTEXT) + 1 if len(gone + new) > CHANGED else 0
    gone, new = (_cut(side, alike, own) for side in (gone, new))
    if gone == new:
        return ""  # only the line breaks differ
    what = f"`{gone}` became `{new}`" if gone and new else f"added `{new}`" if new else f"removed `{gone}`"
    return f"{what} in {basename(change.path)}"


def _differing(before: Sequence[str], after: Sequence[str], *, prose: bool) -> list[list[str]]:
    """The lines of each side that the other lacks: of code without its comments, where more than these differ."""
    sides = [
        [line for line in side if line not in other and line and not _marks(line)]
        for side, other in ((before, after), (after, before))
    ]
    code = [[line for line in side if not _COMMENT.match(line)] for side in sides]
    gone, new = ("".join("".join(side).split()) for side in code)
    return code if gone != new and not prose else sides


_COMMENT = patterns.compile(
    r"(?://|#[! ]|/\*|\*[ /]|--[ ]|<!--)(?!.*(?:nolint|noqa|ignore|disable|allow|expect|type:|go:))"
)
"""A line that only says something of the code: an edit is shown by what it does, unless it is all that was changed."""
PROSE = (".md", ".mdx", ".rst", ".adoc", ".txt")


def _cut(side: str, alike: int, own: AbstractSet[str]) -> str:
    """A side of a change from where it differs; where it names the error only farther on, from there."""
    lower = side.lower()
    places = [at for name in own if (at := lower.find(name, alike)) >= 0]
    if places and min(places) > alike + CHANGED - CONTEXT:
        alike = side.rfind(" ", 0, min(places) - CONTEXT) + 1
    return "…" * (alike > 0) + one_line(side[alike:], CHANGED)


def _settled(before: Sequence[str], after: Sequence[str]) -> str:
    """How a conflict was settled whose marks stand before an edit and not after it; empty where there was none."""
    marks = [
        at for mark in ("<<<<<<<", "=======", ">>>>>>>") for at, line in enumerate(before) if line.startswith(mark)
    ]
    if len(marks) != 3 or marks != sorted(marks) or any(line.startswith(("<<<<<<<", ">>>>>>>")) for line in after):
        return ""
    ours, theirs = before[marks[0] + 1 : marks[1]], before[marks[1] + 1 : marks[2]]
    ours = ours[: next((at for at, line in enumerate(ours) if line.startswith("|||||||")), len(ours))]
    before_it, behind_it = before[: marks[0]], before[marks[2] + 1 :]
    end = len(after) - len(behind_it)
    if end < marks[0] or after[: marks[0]] != before_it or after[end:] != behind_it:
        return ""  # what else was changed may be of the conflict
    written = after[marks[0] : end]
    first, second = (one_line(before[marks[at]][7:].strip(), 40) for at in (0, 2))
    if ours and theirs and written in ([*ours, *theirs], [*theirs, *ours]):
        return f"kept both sides of the conflict between `{first}` and `{second}`"
    if written in (ours, theirs) and ours != theirs:
        kept, other = (first, second) if written == ours else (second, first)
        return f"kept the side of `{kept}` in the conflict with `{other}`"
    return ""


_WORD = patterns.compile(r"\w")


def _marks(line: str) -> bool:
    """Whether a line is a mark of a conflict."""
    return line[:7] in _MARKS and line[7:8] in ("", " ")


_MARKS = ("<<<<<<<", "=======", ">>>>>>>", "|||||||")
CONTEXT = 20
"""Characters that are shown before the place where two lines part."""


def _from_the_point(lines: Sequence[str], about: AbstractSet[str], own: AbstractSet[str]) -> str:
    """Lines as one, of many from the one on that names most."""
    if sum(map(len, lines)) <= CHANGED:
        return " ".join(lines)
    named = [names_within(line) for line in lines]
    at = max(range(len(lines)), key=lambda i: (_OWN * len(own & named[i]) + len(about & named[i]), -i), default=0)
    return " ".join(lines[at:])


_OWN = 3
"""How many names of what is said of an error one of its own weighs."""


class _Compared(NamedTuple):
    """What of an attempt others are compared with: its approach, its edits, and the names of the files."""

    approach: str
    hunks: frozenset[str]
    files: frozenset[str]


def _compared(attempt: Attempt) -> _Compared:
    return _Compared(attempt.approach, frozenset(attempt.hunks), frozenset(map(basename, attempt.files)))


def alike(a: Attempt, b: Attempt) -> bool:
    """Whether two attempts are one solution: they made the same edit, or their approaches read alike (less so
    where they edited the same files)."""
    return _alike(_compared(a), _compared(b))


def _alike(a: _Compared, b: _Compared) -> bool:
    if a.approach == b.approach or not a.hunks.isdisjoint(b.hunks):
        return True
    same_files = bool(a.files) and a.files == b.files
    if not a.approach or not b.approach:
        return same_files
    least = ALIKE_ON_SAME_FILES if same_files else ALIKE
    return fuzz.token_sort_ratio(a.approach, b.approach, score_cutoff=least) >= least


def _solution(
    group: list[Attempt], details: dict[str, Detail], failed: set[str], conditions: tuple[str, ...]
) -> Solution:
    outcomes = tuple(KeptOutcome(a.at, a.id, 0.0 if a.id in failed else 1.0) for a in group)
    # What lasted shows the way; a group of failures is shown by its latest.
    lasting = [a for a in group if a.id not in failed] or group
    shown = max(lasting, key=lambda a: (a.id in details, a.at, a.id))
    detail = details.get(shown.id, Detail(shown.at, shown.id))
    files = tuple(dict.fromkeys(f for a in reversed(group) for f in a.files))[:8]
    where = (f"`{detail.command}` failed",) if detail.command else ()
    return Solution(
        approach=shown.approach,
        description=detail.explanation,
        edits=detail.edits,
        files=files,
        conditions=where + conditions,
        uses=len(group),
        successes=sum(a.id not in failed for a in group),
        success_rate=moving_average(outcomes),
        first_used=group[0].at,
        last_used=group[-1].at,
        attempts=tuple(a.id for a in group),
    )
