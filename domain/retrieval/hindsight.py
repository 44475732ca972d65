"""Hindsight: what a session needed, paired with what memory held before.

Later events show what a session needed, and the log shows what memory held by then. A need is paired with the memory
of an earlier session only where both show it: the same error, resolved the same way or worded the same; the same
file or value, reached from a request that is near. A pair that is not true is worse than one that is missed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from string import ascii_letters, digits
from typing import Literal, NamedTuple

import msgspec

from memctl.domain.events.facts import Edit
from memctl.domain.language.prompts import words_in
from memctl.domain.shell.commands import head_of
from memctl.domain.shell.harmless import harmless
from memctl.domain.support import patterns
from memctl.domain.support.bounded import NARROW, clipped
from memctl.domain.support.mentions import without_homes
from memctl.domain.support.remembered import remembered
from memctl.domain.support.text import Blanked, Runs

HindsightKind = Literal["known error", "known command", "found out again", "known place"]

APART = 10 * 60_000_000
"""Microseconds that a memory has to be older than the need: of sessions side by side none learns from the other."""

MOST_WORDS = 120
"""Words of a request with its answer, or of a way to resolve an error, that are kept."""

LEAST_SHARED, NEAR = 4, 0.3
"""A memory is near to a request when it holds so many of the request's content words, and that share of them."""

RARE = 4
"""Sessions that may have held a value before, for it to say something."""

ALIKE = 0.3
"""The share of the shorter change's words that two changes have in common, to be the same way out of an error."""


class HeldMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an earlier session left behind that a later one could have used.

    `memory` is the memory that was made of it; `event` the last event that it rests on: since that event's position
    memory held it. `words` are those of the request and its answer, or of the way an error was resolved.
    """

    at: int
    id: str
    stream: str
    location: str
    memory: str
    event: str
    text: str
    words: tuple[str, ...] = ()
    lineage: str = ""
    """What copies and forks of a session share with it; empty where nothing is known of that."""
    member: str = ""
    """Through whose key it came; empty of what this machine saw."""


class Need(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a session needed: `event` shows the need, `end` that it was met (empty where it was not)."""

    at: int
    id: str
    stream: str
    location: str
    event: str
    text: str
    end: str = ""
    words: tuple[str, ...] = ()
    calls: int = 0
    duration_us: int = 0
    tokens: int = 0
    idle_us: int = 0
    """Of `duration_us`, while nobody worked."""


class Pair(msgspec.Struct, frozen=True):
    """A need and the memory that held what it took. `same_way`: the need was met as the memory says."""

    need: Need
    memory: HeldMemory
    same_way: bool
    likeness: float


# --- requests ---

ASKED, ANSWERED = 600, 2_000
"""Characters of a request and of an answer whose words count."""

FEW = 4
"""A request of fewer content words goes on with what was asked before it."""

_IN_NAMES = Blanked(but=ascii_letters, first="가", last="힣")


def request_words(prompt: str, lead: str = "") -> tuple[str, ...]:
    """The content words of a request; `lead` is what was asked before it, which counts where the request is short."""
    words = words_in(without_homes(prompt[:ASKED]))
    if len(words) < FEW:
        words |= words_in(without_homes(lead[:ASKED]))
    return _kept(words)


@remembered(16, longest=32_000)
def memory_words(prompt: str, lead: str, answer: str, files: tuple[str, ...]) -> tuple[str, ...]:
    """The content words of a turn as it is remembered: what was asked, answered, and worked on."""
    paths = " ".join(files).translate(_IN_NAMES)
    return _kept(words_in(without_homes(f"{prompt[:ASKED]} {lead[:ASKED]} {answer[:ANSWERED]} {paths}")))


def nearness(request: Iterable[str], memory: Iterable[str]) -> float:
    """The share of a request's content words that a memory holds; 0 where it is not near."""
    asked = frozenset(request)
    shared = len(asked.intersection(memory))
    likeness = shared / len(asked) if asked else 0.0
    return round(likeness, 4) if shared >= LEAST_SHARED and likeness >= NEAR else 0.0


def _kept(words: Iterable[str]) -> tuple[str, ...]:
    """Long words first, which say more; so that what is cut away is not one end of the alphabet."""
    return tuple(sorted(sorted(words), key=len, reverse=True)[:MOST_WORDS])


# --- ways out of errors ---

RAN = "ran "
"""How a word of a way begins that is a command."""

_NO_BEGIN = f"{digits}:.-"
_CHANGED = Runs(f"{ascii_letters}_{_NO_BEGIN}")
_DISTINCTIVE = patterns.compile(r"[:.]|[a-z][A-Z]")
"""What a word of a change has that is no word of prose."""

_CHORES = ("git add", "git commit", "git status", "git diff", "git stash", "git log", "mise run fmt", "gofmt", "cd")
"""Commands that go along with any change, and resolve nothing by themselves."""


def way_of(edits: Sequence[Edit], ran: Sequence[str]) -> tuple[str, ...]:
    """The words of how an error was resolved: the heads of commands that mended it, then what edits brought in, first
    what is no word of prose."""
    found: dict[str, None] = {}
    for command in ran:
        head = head_of(command)
        if head and not head.startswith(_CHORES):
            found[f"{RAN}{head}"] = None
    for edit in edits:
        before = frozenset(_changed(edit.before))
        found.update((word.rstrip(".:-"), None) for word in _changed(edit.after) if word not in before)
    ordered = sorted(found, key=lambda word: (not word.startswith(RAN), not _is_distinctive(word)))
    return tuple(clipped(word, 40, NARROW) for word in ordered[:MOST_WORDS])


def _changed(side: str) -> list[str]:
    """The words of a side of a change, of four characters or more."""
    runs = (run.lstrip(_NO_BEGIN) for run in _CHANGED.within(without_homes(side)))
    return [word for word in runs if len(word) > 3]


def _is_distinctive(word: str) -> bool:
    return word.startswith(RAN) or _DISTINCTIVE.search(word) is not None


class CommonWay(NamedTuple):
    """What sessions did that ended an error: the commands they ran, or else the words they brought in; how many of
    those whose way is known."""

    commands: tuple[str, ...]
    words: tuple[str, ...]
    sessions: int
    newest: HeldMemory
    of: int


_SAYS_NOTHING = f"{RAN}git "
"""Of work with git a head alone (`git rebase`) says nothing."""

MOST_COMMON = 2
"""Commands or words of a common way that are said."""


def common_way(held: Iterable[HeldMemory], shown: str, check: str = "") -> CommonWay | None:
    """The way out of an error that half of the sessions share whose way is known: at least two of them, unless it is
    plain: a command that checks or formats, or a directive that names the `check` which found the error.
    Nothing of it stands in what was `shown`: an agent follows that by itself."""
    # A fork or a copy of a session has the same moments.
    by_moment = {each.at: each for each in held if each.words}
    ways: dict[str, set[str]] = {}
    for each in by_moment.values():
        ways.setdefault(each.lineage or each.stream, set()).update(each.words)
    counts = Counter(word for words in ways.values() for word in words if _is_worth_saying(word, shown))
    counts = Counter({word: count for word, count in counts.items() if count > 1 or _is_plain(word, check)})
    commands = {word: count for word, count in counts.items() if word.startswith(RAN)}
    sessions = max((commands or counts).values(), default=0)
    if not sessions or sessions * 2 < len(ways):
        return None
    best = sorted(word for word, count in (commands or counts).items() if count == sessions)[:MOST_COMMON]
    newest = max((each for each in by_moment.values() if best[0] in each.words), key=lambda each: (each.at, each.id))
    said = tuple(word.removeprefix(RAN) for word in best)
    return CommonWay(said if commands else (), () if commands else said, sessions, newest, len(ways))


def _is_plain(word: str, check: str) -> bool:
    """Whether a word of a way says by itself how the error ends, once it did."""
    if word.startswith(RAN):
        return harmless(word.removeprefix(RAN))
    return bool(check) and word.endswith(f":{check}")


def _is_worth_saying(word: str, shown: str) -> bool:
    return _is_distinctive(word) and not word.startswith(_SAYS_NOTHING) and word.removeprefix(RAN) not in shown


def same_way(one: Iterable[str], other: Iterable[str], named: str = "") -> float:
    """How much alike two ways out of an error are: 1 where the same command mended both, 0 where nothing is shared.

    `named` is the check that found the error, where it has a name: a directive of that name is a way by itself.
    """
    first, second = frozenset(one), frozenset(other)
    shared = first & second
    if any(word.startswith(RAN) for word in shared):
        return 1.0
    distinctive = [word for word in shared if _DISTINCTIVE.search(word)]
    if named and any(word.rpartition(":")[2] == named for word in distinctive if ":" in word):
        return 0.9
    likeness = len(shared) / min(len(first), len(second)) if shared else 0.0
    return round(likeness, 4) if distinctive and likeness >= ALIKE else 0.0


def check_of(message: str) -> str:
    """The name of the check in the text of a need: `golangci-lint/dupl: …` is of `dupl`; empty where there is none."""
    types = message.partition(":")[0].partition(",")[0]
    return types.rpartition("/")[2] if "/" in types else ""


def form_of(command: str) -> tuple[str, ...]:
    """The words of a form of a command that works: the program and what it is called with."""
    return tuple(clipped(word, 40, NARROW) for word in command.split()[:24])


_NUMBER = patterns.compile(r"\d+")
_NAMELESS = ("conflict", "test failure", "panic", "shell", "exit", "file", "error")
"""Types of errors whose message is not of one cause."""


def same_words(one: str, other: str) -> bool:
    """Whether two messages say the same, numbers aside."""
    return bool(one) and _NUMBER.sub("0", one) == _NUMBER.sub("0", other)


def is_nameless(error_types: Iterable[str]) -> bool:
    """Whether an error's types do not say what is wrong."""
    return all(name.startswith(_NAMELESS) for name in error_types)


# --- pairing ---


def pairs(
    kind: HindsightKind,
    needs: Sequence[Need],
    memories: Sequence[HeldMemory],
    *,
    positions: Mapping[str, int] | None = None,
    together: Callable[[str, str], bool] = lambda one, other: True,
) -> Iterator[Pair]:
    """Of each session's first need, the memory of an earlier session that held best what it took.

    `positions` are those of events in the log: a memory counts whose last event stands before the event that shows the
    need, whatever their clocks say; without positions all do that are older. `together` says of two locations whether
    they are of one project.
    """
    said = {need.id: need.text for need in needs}
    first: dict[str, Need] = {}
    for need in sorted(needs, key=lambda need: (need.at, need.id)):
        first.setdefault(need.stream, need)
    for need in first.values():
        held = [
            each
            for each in memories
            if each.stream != need.stream
            and each.at + APART <= need.at
            and together(each.location, need.location)
            and (positions is None or _before(positions, each.event, need.event))
        ]
        if not held or (kind == "found out again" and len({each.stream for each in held}) > RARE):
            continue
        likenesses = [_likeness(kind, need, each, said.get(each.id, "")) for each in held]
        best, at = max((likeness, number) for number, likeness in enumerate(likenesses))
        if best > 0:
            yield Pair(need, held[at], bool(need.end) and best >= _SAME_WAY.get(kind, 0), best)


def without_twins(found: Sequence[tuple[HindsightKind, Pair]]) -> list[bool]:
    """Which of these stand: where the same failure is a known command, it is no known error besides."""
    commands = {(pair.need.stream, pair.need.event) for kind, pair in found if kind == "known command"}
    return [kind != "known error" or (pair.need.stream, pair.need.event) not in commands for kind, pair in found]


_SAME_WAY: dict[HindsightKind, float] = {"known error": ALIKE, "known command": 1.0}
"""From which likeness on a need was met as the memory says."""


def _before(positions: Mapping[str, int], held: str, needed: str) -> bool:
    return held in positions and needed in positions and positions[held] < positions[needed]


def _likeness(kind: HindsightKind, need: Need, memory: HeldMemory, message: str) -> float:
    if kind == "known command":
        return 1.0 if need.end and need.words == memory.words else ALIKE if memory.words else 0.0
    if kind != "known error":
        return nearness(need.words, memory.words)
    alike = same_way(need.words, memory.words, check_of(need.text)) if need.end else 0.0
    return alike or (ALIKE / 2 if memory.text and same_words(need.text, message) else 0.0)
