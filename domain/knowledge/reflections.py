"""Reflection: what many memories show together and none says alone (Park et al., "Generative Agents", 2023).

When enough has happened in a project, its memories are grouped by error and by file, and a few insights are recorded,
each citing the memories that it came from. The rules here count; they claim nothing that is not counted. (Groups by the
words of titles were tried on real sessions: what came of them was true, and of no use to anybody. So were files that
change together, errors that nothing mended twice, and conflicts and single rules of checkers, of which each case is
mended by itself.)
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple

import msgspec

from memctl.domain.events.event import Payload, event
from memctl.domain.knowledge.strategies import NO_LESSON, OF_CHECKER
from memctl.domain.support import patterns
from memctl.domain.support.bounded import one_line

RULE = "reflection@3"
"""The rules' name and version, recorded with what they made."""

ENOUGH_IMPORTANCE = 150.0
"""Summed importance on the scale of 1 to 10 (ten times the stored one) after which a project is reflected on."""

STALE_DAYS, STALE_MEMORIES = 7, 5
"""Or by age: so many days since the last time, and so many memories since."""

MOST_INSIGHTS, MOST_CITED = 3, 12
"""Insights of one reflection, and memories that each cites: more than that nobody reads or checks."""

Trigger = Literal["importance", "count", "age", "asked"]


@event("reflection.made")
class ReflectionMade(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """What several memories (`memories`, their ids) show together, of the place where the event says it is.

    `topic` is what they share: `file:<path>`, `check:<checker>` or `error:<signature>` (earlier rules recorded
    `pair:<path>`, a line feed and `<path>` as well); a later reflection of the same topic and place takes the place of
    the earlier. `made_by` is a model, or a rule with its version; `prompt` the model's prompt with its version.
    `tokens` of input and output together.
    """

    topic: str
    title: str
    text: str
    memories: tuple[str, ...]
    importance: float = 0.5
    trigger: Trigger = "count"
    made_by: str = RULE
    prompt: str = ""
    tokens: int = 0
    cost_usd: float = 0.0


def files_of(topic: str) -> tuple[str, ...]:
    """The files that a topic is about."""
    kind, _, about = topic.partition(":")
    return tuple(about.split("\n")) if kind in ("file", "pair") else ()


class Grown(msgspec.Struct, frozen=True, kw_only=True):
    """How a project's memory has grown since it was last reflected on. `weight` sums importance from 0 to 1."""

    memories: int
    weight: float
    days: float


def due(grown: Grown, enough: int) -> Trigger | None:
    """Whether it is time to reflect, and by which of the three: `enough` memories are."""
    if grown.weight * 10 > ENOUGH_IMPORTANCE:
        return "importance"
    if grown.memories >= enough:
        return "count"
    if grown.days >= STALE_DAYS and grown.memories >= STALE_MEMORIES:
        return "age"
    return None


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """What reflecting looks at of a memory. Times in microseconds, `importance` 0 to 1."""

    id: str
    kind: str
    title: str
    text: str = ""
    session: str = ""
    outcome: str = ""
    importance: float = 0.5
    at: int = 0
    files: tuple[str, ...] = ()
    signatures: tuple[str, ...] = ()
    error_types: tuple[str, ...] = ()


Shared = Literal["error", "check", "file"]


class MemoryCluster(msgspec.Struct, frozen=True, kw_only=True):
    """Memories that share an error's signature, a checker or a file (`about`), newest first."""

    kind: Shared
    about: str
    pieces: tuple[Piece, ...]

    @property
    def topic(self) -> str:
        return f"{self.kind}:{self.about}"

    @property
    def sessions(self) -> int:
        return len({piece.session for piece in self.pieces})

    @property
    def weight(self) -> float:
        """How much there is to say: what went wrong counts three times."""
        return sum(piece.importance * (3.0 if piece.outcome in _BAD else 1.0) for piece in self.pieces)


_BAD = ("failure", "unsolved")
_OPEN = ("partial", "open", "abandoned")
_RECURS = 3
"""Episodes that must share something before it is said of them."""
_SESSIONS: dict[Shared, int] = {"error": 2, "check": 3, "file": 2}
"""Sessions that they must be of."""
_HELD = patterns.compile(r"Fix: (.*) \(held (\d+) of (\d+)\)$")
_EACH_ITS_OWN = patterns.compile(r"[\w-]+/")
"""Error types whose every case is mended otherwise: conflicts, and rules of checkers (strategies cover those)."""
_MOST_RULES = 6
"""Rules of one checker that an insight lists at most."""
_TROUBLE, _TROUBLED = 3, 0.5
"""Episodes that came to no good end, and their share of a file's, before it is said to be hard to work on."""


def clusters(pieces: Sequence[Piece]) -> list[MemoryCluster]:
    """Episodes grouped by file, by checker and by error, the weightiest first.

    Each group has at least three episodes of two sessions, and no two groups have the same episodes.
    """
    episodes = sorted((piece for piece in pieces if piece.kind == "episode"), key=lambda p: (-p.at, p.id))
    groups: dict[tuple[Shared, str], list[Piece]] = defaultdict(list)
    for piece in episodes:
        for path in dict.fromkeys(piece.files):
            groups["file", path].append(piece)
        for signature in dict.fromkeys(piece.signatures):
            groups["error", signature].append(piece)
        for checker in dict.fromkeys(by[1] for name in piece.error_types if (by := OF_CHECKER.match(name))):
            groups["check", checker].append(piece)
    found = [MemoryCluster(kind=kind, about=about, pieces=tuple(members)) for (kind, about), members in groups.items()]
    found = [c for c in found if len(c.pieces) >= _RECURS and c.sessions >= _SESSIONS[c.kind]]
    found.sort(key=lambda c: (_KINDS.index(c.kind), -c.weight, c.topic))
    grouped: set[frozenset[str]] = set()
    distinct = []
    for cluster in found:
        members = frozenset(piece.id for piece in cluster.pieces)
        if members not in grouped:
            grouped.add(members)
            distinct.append(cluster)
    return sorted(distinct, key=lambda c: (-c.weight, c.topic))


_KINDS: tuple[Shared, ...] = ("error", "check", "file")
"""Of groups with the same members, the one that says most."""


class Reflected(msgspec.Struct, frozen=True, kw_only=True):
    """An insight and the memories that it came from."""

    topic: str
    title: str
    text: str
    importance: float
    memories: tuple[str, ...]


def by_rule(found: Iterable[MemoryCluster], pieces: Sequence[Piece]) -> list[Reflected]:
    """At most three insights that counting gives, each from a group of its own and each group but once."""
    known = {signature: piece for piece in pieces if piece.kind == "bug_pattern" for signature in piece.signatures}
    made: list[Reflected] = []
    used: dict[Shared, set[str]] = defaultdict(set)
    for cluster in found:
        cited = used[cluster.kind]
        fresh = [piece for piece in cluster.pieces if piece.id not in cited]
        if len(fresh) * 2 < len(cluster.pieces):
            continue  # most of it was used already
        insight = _insight(cluster, known)
        if insight is None:
            continue
        made.append(insight)
        cited.update(insight.memories)
        if len(made) == MOST_INSIGHTS:
            break
    return made


class _Saying(NamedTuple):
    """What an insight says: its headline, the sentences below it, and the memories that it cites."""

    head: str
    said: list[str]
    cited: Sequence[Piece]


def _insight(cluster: MemoryCluster, known: dict[str, Piece]) -> Reflected | None:
    outcomes = Counter(piece.outcome for piece in cluster.pieces)
    bad = sum(outcomes[each] for each in _BAD)
    unfinished = sum(outcomes[each] for each in _OPEN)
    count = len(cluster.pieces)
    seen = f"{count} episodes of {cluster.sessions} sessions"
    match cluster.kind:
        case "error":
            saying = _of_error(cluster, seen, known.get(cluster.about))
        case "check":
            saying = _of_checker(cluster, seen)
        case "file":
            saying = _of_file(cluster, seen, bad, unfinished)
    if saying is None:
        return None
    head, said, cited = saying
    return Reflected(
        topic=cluster.topic,
        title=one_line(head, 120),
        text=one_line(f"{head}. {' '.join(said)}", 800),
        importance=round(min(0.4 + 0.04 * count + 0.05 * (bad + unfinished), 0.9), 4),
        memories=tuple(piece.id for piece in cited[:MOST_CITED]),
    )


def _of_error(cluster: MemoryCluster, seen: str, pattern: Piece | None) -> _Saying | None:
    way_out = _way_out(pattern) if pattern is not None else ""
    if pattern is None or not way_out:
        return None
    head = f"This error keeps coming back: {one_line(pattern.title, 200)}"
    said = [f"It came up in {seen}, last on {_day(cluster.pieces[0].at)}.", way_out]
    return _Saying(head, said, (pattern, *cluster.pieces))


def _of_checker(cluster: MemoryCluster, seen: str) -> _Saying | None:
    rules = Counter(rule for p in cluster.pieces for rule in _rules(p, cluster.about))
    often = [(rule, times) for rule, times in rules.most_common() if times >= _RECURS][:_MOST_RULES]
    if len(often) < 2:
        return None  # a strategy covers a single rule
    head = f"{cluster.about} finds the same again and again here: {', '.join(f'`{rule}`' for rule, _ in often)}"
    listed = ", ".join(f"`{rule}` {times}" for rule, times in often)
    return _Saying(head, [f"It refused work in {seen}: {listed}. Look for these before it is run."], cluster.pieces)


def _of_file(cluster: MemoryCluster, seen: str, bad: int, unfinished: int) -> _Saying | None:
    if bad + unfinished < max(_TROUBLE, _TROUBLED * len(cluster.pieces)):
        return None
    head = f"Work on {_tail(cluster.about)} often does not come to its end"
    said = [f"Of {seen} that changed it, {_counted(bad, unfinished)}."]
    done = next((piece for piece in cluster.pieces if piece.outcome == "success"), None)
    if done is None:
        return _Saying(head, said, cluster.pieces)
    said.append(f"What came to its end last: {one_line(done.title, 160)} ({_day(done.at)}).")
    # Whatever is quoted is cited.
    return _Saying(head, said, (done, *(piece for piece in cluster.pieces if piece is not done)))


def _rules(piece: Piece, checker: str) -> list[str]:
    """The rules of a checker that a piece of work broke, but for those that every agent keeps."""
    broken = [name.partition("/")[2] for name in piece.error_types if name.startswith(f"{checker}/")]
    return [rule for rule in broken if not NO_LESSON.search(rule)]


def _way_out(pattern: Piece) -> str:
    """What mended an error more than once; empty where nothing did, or what did is of each case alone."""
    found = next((match for line in pattern.text.splitlines() if (match := _HELD.match(line))), None)
    if found is None or int(found[2]) < 2:
        return ""
    if "ran `" not in found[1] and any(_EACH_ITS_OWN.match(each) for each in pattern.error_types):
        return ""
    return f"Fix: {one_line(found[1], 240)} (held {found[2]} of {found[3]})"


def _counted(bad: int, unfinished: int) -> str:
    counts = [f"{bad} failed" if bad else "", f"{unfinished} were left unfinished" if unfinished else ""]
    return " and ".join(filter(None, counts))


def _tail(path: str) -> str:
    return "/".join(path.split("/")[-2:])


def _day(micros: int) -> str:
    try:
        return f"{datetime.fromtimestamp(micros / 1e6, UTC):%Y-%m-%d}"
    except (OverflowError, OSError, ValueError):
        return "an unknown day"
