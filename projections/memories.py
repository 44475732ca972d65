"""L4: the one searchable row per memory, whatever made it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from memctl.domain import memory as rules
from memctl.domain.bounded import clipped, names, one_line
from memctl.domain.facts import Episode, Span, Turn
from memctl.domain.graduation import TIER_NAMES, USER_SAID
from memctl.domain.memory import (
    Bucket,
    MemoryKind,
    Status,
    day_of,
    first_sentences,
    memory_id,
    place_of,
    search_text,
    telling,
)
from memctl.projections.bug_patterns import BugPattern
from memctl.projections.kernel import Changed, projection
from memctl.projections.verified_knowledge import VerifiedClaim, VerifiedKnowledge


class Source(msgspec.Struct, frozen=True):
    """Where a memory comes from: a read model and its key, or `facts` and a fact's id."""

    projection: str
    key: str


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that can be found again. Times in microseconds.

    `text` is shown (2,000 characters at most), `search_text` is indexed by word (3,000), `gist` is the chunk to embed
    (480). `location` is empty for what holds everywhere; `locations` are all places it was met in. `status` is record
    for what happened, verified or conflicted for claims. `importance` and `confidence` in 0 to 1.
    """

    id: str
    kind: MemoryKind
    bucket: Bucket
    title: str
    gist: str
    text: str
    search_text: str
    location: str
    locations: tuple[str, ...]
    sessions: tuple[str, ...]
    """Streams, newest first."""
    importance: float
    confidence: float
    status: Status
    occurred_at: int
    first_at: int
    last_at: int
    source: Source
    evidence: tuple[Span, ...] = ()
    files: tuple[str, ...] = ()
    error_types: tuple[str, ...] = ()
    signatures: tuple[str, ...] = ()
    outcome: str = ""
    task: str = ""
    before: str = ""
    """Of a turn, the memory of the turn before it in its session."""


Input = Turn | Episode | Changed[BugPattern] | Changed[VerifiedKnowledge]


def _key(item: Input) -> str | tuple[str, ...]:
    match item:
        case Turn():
            return memory_id("turn", str(item.id))
        case Episode():
            return memory_id("episode", str(item.id))
        case Changed(row=BugPattern()):
            return memory_id("bug_pattern", item.key)
        case Changed(row=VerifiedKnowledge()):
            return memory_id("knowledge", item.key)
        case Changed():
            # A row that is gone does not say whose it was; no two of these ids can be one memory's.
            return memory_id("bug_pattern", item.key), memory_id("knowledge", item.key)


@projection(
    row=Memory,
    key=_key,
    indexes=(
        ("location", "kind", "occurred_at"),
        ("bucket", "occurred_at"),
        ("kind", "occurred_at"),
        ("occurred_at",),
        ("importance",),
    ),
)
def memories(
    row: Memory | None, item: Turn | Episode | Changed[BugPattern] | Changed[VerifiedKnowledge]
) -> Memory | None:
    """Everything that can be found again (L4): turns, episodes, bug patterns, and claims that passed L3."""
    match item:
        case Turn():
            made = of_turn(item)
        case Episode():
            made = _of_episode(item)
        case Changed(row=BugPattern() as pattern):
            made = _of_bug_pattern(pattern)
        case Changed(row=VerifiedKnowledge() as knowledge):
            made = _of_knowledge(knowledge)
        case _:
            return None
    return made if rules.worth_keeping(made.text, made.importance) else None


def of_turn(turn: Turn) -> Memory:
    """The memory that a turn makes."""
    at = int(turn.occurred_at)
    answers = bool(turn.answer.strip())
    asked = first_sentences(turn.prompt, rules.GIST // 2 if answers else rules.GIST)
    answered = telling(turn.answer, rules.GIST // 2) if answers else ""
    text = clipped(turn.prompt.strip(), 800)
    if turn.answer.strip():
        text += "\n→ " + clipped(turn.answer.strip(), 1100)
    return Memory(
        id=memory_id("turn", str(turn.id)),
        kind="turn",
        bucket="EPISODIC",
        title=one_line(asked, rules.TITLE),
        gist=one_line(f"{asked} → {answered}" if answered else asked, rules.GIST),
        text=text,
        search_text=search_text(
            clipped(turn.prompt, 1200), clipped(turn.answer, 1200), _listed(turn.files), _context(turn.location, at)
        ),
        location=turn.location,
        locations=_places((turn.location,)),
        sessions=(clipped(turn.stream, 160),),
        importance=rules.turn_importance(turn),
        confidence=1.0,
        status="record",
        occurred_at=at,
        first_at=at,
        last_at=at,
        source=Source("facts", str(turn.id)),
        evidence=turn.evidence[:4],
        files=_paths(turn.files),
        task=clipped(turn.task, 160),
        before=memory_id("turn", str(turn.before)) if turn.before is not None else "",
    )


def _of_episode(episode: Episode) -> Memory:
    at = int(episode.occurred_at)
    end = max(int(episode.ended_at), at)
    outcome = "open" if episode.outcome == "unknown" and not episode.closed else episode.outcome
    said = episode.solution or episode.answer
    parts = (
        episode.description,
        f"Outcome: {outcome}" + (f" ({one_line(episode.why, 160)})" if episode.why else ""),
        f"Problem: {clipped(episode.problem, 400)}" if episode.problem else "",
        f"Solution: {clipped(said, 700)}" if said else "",
        f"Decided: {clipped('; '.join(episode.decisions[:5]), 300)}" if episode.decisions else "",
        f"Files: {_listed(episode.files)}" if episode.files else "",
    )
    return Memory(
        id=memory_id("episode", str(episode.id)),
        kind="episode",
        bucket="EPISODIC",
        title=one_line(episode.description, rules.TITLE),
        gist=one_line(
            f"{first_sentences(episode.description, 160)} → {telling(said, 200)}" if said else episode.description,
            rules.GIST,
        ),
        text=clipped("\n".join(p for p in parts if p), rules.TEXT),
        search_text=search_text(
            clipped(episode.description, 600),
            clipped(episode.problem, 500),
            clipped(said, 900),
            clipped(" ".join(episode.decisions), 300),
            " ".join((*episode.error_types[:6], *episode.symbols[:10])),
            f"{episode.task_type} {outcome}",
            _listed(episode.files),
            _context(episode.location, at),
        ),
        location=episode.location,
        locations=_places((episode.location,)),
        sessions=(clipped(episode.stream, 160),),
        importance=rules.episode_importance(episode),
        confidence=1.0,
        status="record",
        occurred_at=at,
        first_at=at,
        last_at=end,
        source=Source("episodes", str(episode.id)),
        evidence=episode.evidence[:8],
        files=_paths(episode.files),
        error_types=tuple(clipped(t, 80) for t in episode.error_types[:8]),
        signatures=tuple(clipped(s, 64) for s in episode.signatures[:16]),
        outcome=outcome,
        task=clipped(episode.task, 160),
    )


def _of_bug_pattern(pattern: BugPattern) -> Memory:
    types = ", ".join(pattern.error_types)
    message = pattern.message or pattern.template
    head = one_line(f"{types}: {message}" if types and not message.startswith(types) else message or types, 300)
    solutions = pattern.solutions
    best = solutions[0] if solutions else None
    way_out = ""
    if best is not None:
        way_out = f"Fix: {best.approach or one_line(best.description, 200)}".strip()
        way_out += f" (held {best.successes} of {best.uses})"
        if best.description:
            way_out += f"\nWhy: {best.description}"
        if best.files:
            way_out += f"\nEdited: {_listed(best.files)}"
    places = names(pattern.locations)
    return Memory(
        id=memory_id("bug_pattern", pattern.signature),
        kind="bug_pattern",
        bucket="FACT",
        title=one_line(head, rules.TITLE),
        gist=one_line(f"{one_line(head, 180)} → {best.approach}" if best and best.approach else head, rules.GIST),
        text=clipped(
            "\n".join(p for p in (head, f"Seen {pattern.occurrences}×, fixed {pattern.resolutions}×", way_out) if p),
            rules.TEXT,
        ),
        search_text=search_text(
            head,
            clipped(pattern.template, 400),
            way_out,
            _listed(pattern.frames),
            _listed(names(pattern.files)),
            " ".join(names(pattern.commands)[:3]),
            " ".join((*names(pattern.file_types), *names(pattern.frameworks))),
            _context(places[0] if places else "", pattern.last_seen),
        ),
        location=places[0] if places else "",
        locations=_places(places),
        sessions=names(pattern.sessions),
        importance=rules.bug_importance(pattern.occurrences, best.success_rate if best else None),
        confidence=best.success_rate if best else 0.5,
        status="record",
        occurred_at=pattern.last_seen,
        first_at=pattern.first_seen,
        last_at=pattern.last_seen,
        source=Source("bug_patterns", pattern.signature),
        evidence=tuple(s.span for s in pattern.evidence),
        files=_paths(names(pattern.files)),
        error_types=pattern.error_types,
        signatures=(pattern.signature,),
        outcome="solved" if best is not None and best.successes else "unsolved",
    )


def _of_knowledge(knowledge: VerifiedKnowledge) -> Memory:
    standing = [c for c in knowledge.claims if not c.superseded_by][:5]
    replaced = [c for c in knowledge.claims if c.superseded_by][:5]
    head = standing[0]
    lines = [c.text for c in standing]
    lines += [f"Before: {c.text} ({_dates(c)}; {TIER_NAMES.get(c.tier, c.said_by)})" for c in replaced]
    text = clipped("\n".join(dict.fromkeys(lines)), rules.TEXT)
    return Memory(
        id=memory_id("knowledge", knowledge.id),
        kind="knowledge",
        bucket=rules.bucket_of(head.kind),
        title=one_line(head.text, rules.TITLE),
        gist=one_line(" ".join(dict.fromkeys(c.text for c in standing)), rules.GIST),
        text=text,
        search_text=search_text(
            text, head.kind, knowledge.subject.replace("/", " "), _context(knowledge.location, head.last_seen)
        ),
        location=knowledge.location,
        locations=_places((knowledge.location,)),
        sessions=(),
        importance=rules.knowledge_importance(head.kind, head.confidence, head.tier >= USER_SAID),
        confidence=head.confidence,
        status="conflicted" if replaced else "verified",
        occurred_at=head.last_seen,
        first_at=knowledge.first_seen,
        last_at=knowledge.last_seen,
        source=Source("verified_knowledge", knowledge.id),
        evidence=tuple(s for c in (*standing, *replaced) for s in c.evidence)[:8],
        files=_paths(dict.fromkeys(f for c in standing for f in c.files)),
    )


def _dates(claim: VerifiedClaim) -> str:
    since = day_of(claim.valid_from)[:10]
    until = day_of(claim.valid_until)[:10] if claim.valid_until is not None else ""
    return f"{since} to {until}" if until else f"since {since}"


def _context(location: str, at: int) -> str:
    return f"{place_of(location)} {day_of(at)}".strip()


def _places(locations: Iterable[str]) -> tuple[str, ...]:
    return tuple(place for place in locations if place)


def _paths(files: Iterable[str]) -> tuple[str, ...]:
    return tuple(clipped(f, 160) for f in files)[:16]


def _listed(files: Iterable[str]) -> str:
    return clipped(" ".join(list(files)[:12]), 500)
