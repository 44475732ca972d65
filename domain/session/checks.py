"""Whether a run shows that what an earlier one found is in order: what it looked at, how it ended, what it printed.

A run looks at folders and files, or at all that is where it runs. Its end is its own exit code; where a filter or a
later command has the last word, what it printed has to say how it ended.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import NamedTuple

from memctl.domain.events.facts import ErrorOccurred
from memctl.domain.failures.templates import plain
from memctl.domain.shell.commands import Part, parts_of, proves
from memctl.domain.shell.directories import bare, parts_where
from memctl.domain.support import patterns
from memctl.domain.support.location import joined
from memctl.domain.support.remembered import remembered


class Run(NamedTuple):
    """A command, the directory in which it began (empty where that is not known), and what it printed."""

    command: str
    began: str = ""
    output: str = ""


# --- how it ended ---

_WHOLE = ("cat", "tee", "less", "more", "out-string", "out-host", "tee-object")
"""Filters that show all lines as they come: what fails is seen behind them."""
_COUNT = patterns.compile(r"(?:-n|--lines=|-)?(\d+)")

_STORED = patterns.compile(r"(?:^|[\s\w)&])(?:1|&)?>{1,2} *[^&\s>]")
_STORED_ERRORS = patterns.compile(r"2>{1,2} *[^&\s]")
"""Redirections of what a command prints, and of its errors alone: there they are not seen."""

_LOOKED_AT = 8_000
"""Characters of the beginning and of the end of an output that are asked how a run ended."""

_COUNTING = patterns.compile(r"-{1,2}(?:statistics|count|exit-zero|no-fail|quiet-errors|passWithNoTests|if-present)\z")

_PASSES = patterns.compile(
    r"^\W*ok\b|\bok\b\W*$|\bpass(?:ed|ing|es)?\b|\bsucce(?:ss|ssful|ssfully|eded)\b|"
    r"\b(?:0|no) (?:errors?|issues?|problems?|alerts?|warnings?|failed|failing|failures?|fail)\b|[✓✔]|"
    r"\b0 to fix\b|\ball (?:checks|files|good|clean)\b",
    patterns.I | patterns.M,
)
_EXITED_0 = patterns.compile(r"\b(?:exit|rc|status)\b[^\n\w]{0,6}(?:code|status)?[^\n\w]{0,6}0\b", patterns.I)
_FAILS = patterns.compile(
    r"^\s*(?:---? )?FAIL\b|^\s*not ok\b|[✖✗✘] *[^\s0]|"
    r"\b[1-9]\d* (?:\w+ )?(?:errors?|problems?|issues?|failed|failing|failures?|fail)\b|"
    r"\b(?i:exit(?:ed)?|rc|status)\b[^\n\w]{0,6}(?:(?:with )?(?:code|status))?[^\n\w]{0,6}[1-9]",
    patterns.M,
)
"""What an output says of a run's end."""
_COMPLAINS = patterns.compile(r"^\s*(?:npm )?(?:error|ERR!)(?:\[|:| TS\d)|: error(?::| TS\d)", patterns.M | patterns.I)
"""How lines begin that say of an error: a failing run's, where it does not say at its end that it passed."""


def ended_well(run: Run, heads: AbstractSet[str], failed: str = "") -> bool:
    """Whether a command that went well shows that those of its parts went well that have these heads: the exit code is
    theirs, or what they printed says so, or would have said otherwise. Behind a filter that leaves lines out, silence
    says something only where the command that `failed` was filtered alike: there the error was seen."""
    parts = parts_of(run.command)
    at = _last(parts, heads)
    if at < 0:
        return False
    piped = _piped(parts, at)
    counts = any(_COUNTING.match(word) for word in parts[at].words)
    if not counts and _own_exit(run.command, parts, at, piped):
        return True
    says = _printed(run.command, run.output)
    if says.fails:
        return False
    if may_hide(run, heads, failed):
        # The beginning of an output is no summary, and what another program says is none of this one.
        others = any(proves(part.head) and part.head not in heads for part in parts)
        return not others and all(part.head != "head" for part in piped) and says.passes
    if says.passes or (says.exited_0 and (not piped or "PIPESTATUS" in run.command)):
        return True
    seen = not counts and not any(pattern.search(run.command) for pattern in (_STORED, _STORED_ERRORS))
    return seen and not says.complains


def may_hide(run: Run, heads: AbstractSet[str], failed: str = "") -> bool:
    """Whether a filter behind the parts of a command that have these heads may have left out what they say of an error,
    and did not when the same filter stood behind what `failed`."""
    parts, before = parts_of(run.command), parts_of(failed)
    piped = _piped(parts, _last(parts, heads))
    if not piped:
        return False
    lines = _printed(run.command, run.output).lines
    if all(part.head.split(" ")[0] in _WHOLE or _most(part) > lines for part in piped):
        return False
    filters, others = (
        [[word for word in part.words if not _COUNT.fullmatch(word)] for part in each]
        for each in (piped, _piped(before, _last(before, heads)))
    )
    return filters != others


def _most(part: Part) -> int:
    """How many lines an output may have of which a filter shows the beginning or end; 0 for another filter."""
    counts = [int(found[1][:6]) for word in part.words[1:] if (found := _COUNT.fullmatch(word))]
    return (counts or [10 * (len(part.words) == 1)])[0] if part.head in ("head", "tail") else 0


def _last(parts: tuple[Part, ...], heads: AbstractSet[str]) -> int:
    """Where the last part stands that has one of these heads; else the last."""
    return max((number for number, part in enumerate(parts) if part.head in heads), default=len(parts) - 1)


def _piped(parts: tuple[Part, ...], at: int) -> tuple[Part, ...]:
    """The filters behind a part."""
    end = at + 1
    while end < len(parts) and parts[end].after == "|":
        end += 1
    return parts[at + 1 : end]


def _own_exit(command: str, parts: tuple[Part, ...], at: int, piped: tuple[Part, ...]) -> bool:
    """Whether a command cannot have gone well unless this part did."""
    later = {part.after for part in parts[at + 1 + len(piped) :]}
    return (not piped or "pipefail" in command) and parts[at].after != "||" and later <= {"&&", "|"}


def looked_at(output: str) -> str:
    """What of an output is asked how a run ended."""
    return output if len(output) <= 2 * _LOOKED_AT else f"{output[:_LOOKED_AT]}\n{output[-_LOOKED_AT:]}"


class _Says(NamedTuple):
    """What an output of so many lines says of how a run ended."""

    lines: int
    passes: bool
    exited_0: bool
    fails: bool
    complains: bool


@remembered(64)
def _printed(command: str, output: str) -> _Says:
    """What a command printed, but for what it says itself whatever happens: asked for each open error."""
    parts = parts_of(command)
    said = {" ".join(map(bare, part.words[1:])) for part in parts if part.head == "echo" and part.after != "&&"}
    lines = [line for line in plain(looked_at(output)).splitlines() if line.strip() not in said]
    text = "\n".join(lines)
    found = (pattern.search(text) is not None for pattern in (_PASSES, _EXITED_0, _FAILS, _COMPLAINS))
    return _Says(len(text.splitlines()), *found)


def still_shows(output: str, error: ErrorOccurred) -> bool:
    """Whether an output names an error again: its words, or its rule, with the file it stood in."""
    text = plain(output)
    named = [file.rpartition("/")[2] for file in error.files]
    if named and not any(name in text for name in named):
        return False
    first = error.message.partition("\n")[0].strip()
    rules = [kind.rpartition("/")[2] for kind in error.error_types if "/" in kind]
    return (len(first) >= _SHORTEST and first in text) or (
        bool(named) and any(_is_rule(r) and r in text for r in rules)
    )


_SHORTEST = 14
"""Characters from which words are an error's own."""


def _is_rule(name: str) -> bool:
    """Whether a linter's rule has a name that is no everyday word."""
    return any(not letter.islower() for letter in name)


# --- what it looked at ---

_WITH_VALUE = patterns.compile(
    r"-{1,2}(?:run|k|t|g|grep|filter|tests?|testNamePattern|test-name-pattern|bench|timeout|tags|m|config\w*|o|"
    r"out\w*|output[\w-]*|p|project|tsconfig|prefix|cwd|C|dir|directory|f|format|reporter|ignore-path|rulesdir|rootdir|"
    r"root|coverprofile|cov[\w-]*|junitxml|maxfail|n|j|jobs|glob|ext|cache[\w-]*|log[\w-]*|workspace|w|exec|require|"
    r"plugin|env|global-config|mount)\z"
)
"""Options whose next word says nothing of what a run looks at."""
_SETTINGS = patterns.compile(r"(?:.*[/.])?[\w.-]*(?:config|rc)\b[\w.-]*|.*\.(?:toml|ini|ya?ml|cfg)")
_TARGET = patterns.compile(r"\.{1,3}|(?:\.{0,2}/|[\w@.-]+/|[A-Za-z]:[/\\]).*|[\w@][\w@.()-]*\.[A-Za-z]\w{0,5}")
_UNREAD = patterns.compile(r"[$`=]|://")
_GLOB = patterns.compile(r"[*?\[{]")


MOST_TARGETS = 16
"""Folders and files of a run's narrowing that are looked at, the first: each is held against every open error."""


def targets_of(run: Run, heads: AbstractSet[str]) -> frozenset[str]:
    """The folders and files that the tests, checks and builds of these heads in a command were narrowed to, from the
    root on where the directory is known. Empty where one of them looks at all there is."""
    return _narrowed_to(run.command, run.began, tuple(sorted(heads)))


@remembered(512)
def _narrowed_to(command: str, began: str, heads: tuple[str, ...]) -> frozenset[str]:
    found: dict[str, None] = {}
    for at, part in parts_where(command, began):
        if part.head in heads and proves(part.head):
            targets = list(islice(paths_in(part, at), MOST_TARGETS))
            if not targets or "" in targets:
                return frozenset()
            found.update(dict.fromkeys(targets))
        if len(found) >= MOST_TARGETS:
            break
    return frozenset(islice(found, MOST_TARGETS))


def _kinds(run: Run, heads: AbstractSet[str]) -> set[str]:
    """The kinds of files, by the ends of their names, that patterns narrow the parts of these heads to."""
    if "*" not in run.command:
        return set()
    words = (bare(word) for part in parts_of(run.command) if part.head in heads for word in part.words[1:])
    return {kind for word in words if (found := _KIND.match(word)) for kind in found[1].split(",")}


_KIND = patterns.compile(r"[\w./-]*\*[^=]*\.\{?([A-Za-z][\w,]*)\}?\z")


def paths_in(part: Part, at: str) -> Iterable[str]:
    """The files and folders that a program is given, from the root on where the directory that it ran in is known;
    empty for all that lies there."""
    words = [bare(word) for word in part.words[1:]]
    for before, word in zip(["", *words], words, strict=False):
        if word.startswith("-") or _UNREAD.search(word) or not _TARGET.fullmatch(word):
            continue
        if _WITH_VALUE.match(before) or (before in ("-c", "-r") and _SETTINGS.fullmatch(word)):
            continue
        whole = _GLOB.split(word.split("::")[0].removesuffix("...").replace("\\", "/"), maxsplit=1)
        path = whole[0] if len(whole) == 1 else whole[0].rpartition("/")[0]
        path = path.rstrip("/") or ("/" if path.startswith("/") else "")
        if path in ("", "."):
            yield ""
        else:
            yield joined(at, path) if at else path.removeprefix("./")


def looks_at(
    again: Run, heads: AbstractSet[str], error: ErrorOccurred, failed: Run, culprits: AbstractSet[str]
) -> bool:
    """Whether a run looks at where an error is: at all that the failed run looked at, or at the file that it names."""
    ends = {file.rpartition(".")[2] for file in error.files} or _kinds(failed, culprits)
    if (kinds := _kinds(again, heads)) and kinds.isdisjoint(ends):
        return False
    narrowed = targets_of(again, heads)
    if not narrowed:
        return True
    before = targets_of(failed, culprits)
    if before and all(not narrowed.isdisjoint(_upwards(target)) for target in before):
        return True
    tests = any(proves(head) == "test" for head in heads)
    files = [file.strip("./") for file in error.files if "/" in file.strip("./")]
    if files:
        return _looks_at_files(narrowed, files, tests=tests)
    return _looks_at_names(narrowed, error, tests=tests, narrower=not before)


def _looks_at_names(narrowed: AbstractSet[str], error: ErrorOccurred, *, tests: bool, narrower: bool) -> bool:
    """Whether a run of some targets looks at an error that names files without their folders, or none. `narrower`: the
    failed run looked at all there is."""
    names = {name for file in error.files if "." in (name := file.rpartition("/")[2])}
    names |= {name for frame in error.frames if "." in (name := frame.partition(":")[0])}
    given = [posixpath.basename(target) for target in narrowed]
    if names and all("." in name for name in given):
        return any(g == name or (tests and g in name) for g in given for name in names)
    return narrower and (tests or bool(error.frames or names))


def _looks_at_files(narrowed: AbstractSet[str], files: Sequence[str], *, tests: bool) -> bool:
    """Whether a run of some targets looks at one of these files. Runners of tests look for files whose path holds what
    they are given."""
    if tests and any(posixpath.basename(target) in file for target in narrowed for file in files):
        return True
    folders = [f"/{target.strip('/')}/" for target in narrowed]
    return any(_within(f"/{file}/", folder) for file in files for folder in folders)


def _upwards(path: str) -> Iterable[str]:
    """A path, and the folders that it lies in."""
    end = len(path)
    while end > 0:
        yield path[:end]
        end = path.rfind("/", 0, end)


def _within(inner: str, outer: str) -> bool:
    """Whether a path lies in a folder, or is it, both between slashes. A path that a tool printed begins anywhere: then
    where the folder ends as the path begins."""
    if outer in inner or inner in outer:
        return True
    first, at = inner[: inner.find("/", 1) + 1], len(outer)
    for _ in range(_DEEPEST):  # where its end may be how the path begins
        at = outer.rfind(first, 0, at + len(first) - 1)
        if at < 0 or inner.startswith(outer[at:]):
            return at >= 0
    return False


_DEEPEST = 64
"""Places of a folder's path from which on another one may begin."""
