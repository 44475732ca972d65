"""L4: the one searchable row per memory, whatever made it."""

from collections.abc import Iterator
from typing import Any

import msgspec

from memctl.domain.events.facts import Episode, EpisodeDecision, SectionWritten, Turn
from memctl.domain.failures.solutions import Solution
from memctl.domain.knowledge import memory as rules
from memctl.domain.knowledge.graduation import length_of
from memctl.domain.knowledge.memory import (
    MemoryKind,
    day_of,
    first_sentences,
    key_sentences,
    memory_id,
    plain_sentences,
    search_text,
)
from memctl.domain.knowledge.personal import is_personal
from memctl.domain.language.prompt_origin import is_typed
from memctl.domain.language.tasks import titled
from memctl.domain.support.bounded import ELSEWHERE, clipped, names, one_line
from memctl.domain.support.location import NOWHERE, is_in_another_memory
from memctl.domain.support.provenance import RIGHTS, Provenance, words_of, words_to_all
from memctl.domain.support.wording import fix_and_why
from memctl.projections.bug_patterns import BugPattern
from memctl.projections.commits import Commit
from memctl.projections.kernel import Changed, projection
from memctl.projections.memories_learnt import (
    of_commit,
    of_project,
    of_reflection,
    of_strategy,
)
from memctl.projections.memory_rows import Memory, Source, context, listed, memory_of, paths, places
from memctl.projections.project_digests import ProjectDigest
from memctl.projections.reflections import Reflection
from memctl.projections.strategies import Strategy
from memctl.projections.verified_knowledge import VerifiedClaim, VerifiedKnowledge

Input = (
    Turn
    | Episode
    | SectionWritten
    | Changed[BugPattern]
    | Changed[VerifiedKnowledge]
    | Changed[Strategy]
    | Changed[ProjectDigest]
    | Changed[Reflection]
    | Changed[Commit]
)

CORRECTED = "corrected by the user's next words"
"""What a turn came to whose answer the user did not let stand."""

DECIDED, EPISODE = 5_600, 7_200
"""Characters of what each origin decided in a piece of work, and of what is shown of it."""

KINDS: dict[type[Any], MemoryKind] = {
    BugPattern: "bug_pattern",
    VerifiedKnowledge: "knowledge",
    Strategy: "strategy",
    ProjectDigest: "project",
    Reflection: "reflection",
    Commit: "commit",
}
"""Upstream rows that memories are made of."""


def _key(item: Input) -> str | tuple[str, ...]:
    match item:
        case Turn():
            return memory_id("turn", str(item.id))
        case Episode():
            return memory_id("episode", str(item.id))
        case SectionWritten():
            return memory_id("document", str(item.id))
        case Changed(row=None):
            # A row that is gone does not say whose it was; no two of these ids can be one memory's.
            return tuple(memory_id(kind, item.key) for kind in KINDS.values())
        case Changed(row=row):
            return memory_id(KINDS[type(row)], item.key)


@projection(
    row=Memory,
    key=_key,
    one_to_one=True,
    indexes=(
        ("location", "kind", "occurred_at"),
        ("bucket", "occurred_at"),
        ("kind", "occurred_at"),
        ("occurred_at",),
        ("importance",),
    ),
)
def memories(row: Memory | None, item: Input) -> Memory | None:
    """Everything that can be found again (L4): records of what happened, and claims that passed L3."""
    made = _made(item)
    if made is not None and is_in_another_memory(made.location):
        made = msgspec.structs.replace(made, said_by=Provenance.IMPORT)
    return made if made is not None and rules.worth_keeping(made.text, made.importance) else None


def _made(item: Input) -> Memory | None:
    match item:
        case Turn():
            return of_turn(item)
        case Episode():
            return _of_episode(item)
        case SectionWritten():
            return _of_section(item) if item.text else None
        case Changed(row=BugPattern() as pattern):
            return of_bug_pattern(pattern)
        case Changed(row=VerifiedKnowledge() as knowledge):
            return _of_knowledge(knowledge)
        case Changed(row=Strategy() as strategy):
            return of_strategy(item.key, strategy)
        case Changed(row=ProjectDigest() as digest):
            return of_project(item.key, digest)
        case Changed(row=Reflection() as reflection):
            return of_reflection(item.key, reflection)
        case Changed(row=Commit() as commit):
            return of_commit(item.key, commit)
        case _:
            return None


def of_turn(turn: Turn) -> Memory:
    """The memory that a turn makes."""
    at = int(turn.occurred_at)
    answer = _answers(turn, 1100)
    said = _answers(turn, 1100, why=len(turn.answer) < rules.SAYS_MUCH)
    asked = first_sentences(turn.prompt, rules.GIST // 2 if answer else rules.GIST)
    answered = key_sentences(said, rules.GIST // 2) if said else ""
    embedded = f"{asked} → {answered}" if answered else asked
    if lead := one_line(turn.lead, rules.LEAD):
        embedded = f"{one_line(embedded, rules.GIST - len(lead) - 3)} ({lead})"
    text = clipped(turn.prompt.strip(), 800)
    if answer:
        text += f"\n→ {answer}"
    return Memory(
        id=memory_id("turn", str(turn.id)),
        kind="turn",
        bucket="EPISODIC",
        title=one_line(_title(turn, asked, said), rules.TITLE),
        gist=one_line(embedded, rules.GIST),
        text=text,
        search_text=search_text(
            clipped(turn.prompt, 3000), _answers(turn, 3000), listed(turn.files), context(turn.location, at)
        ),
        location=turn.location or NOWHERE,
        locations=(turn.location or NOWHERE,),
        sessions=(clipped(turn.stream, 160),),
        importance=rules.turn_importance(turn),
        confidence=1.0,
        status="record",
        occurred_at=at,
        first_at=at,
        last_at=at,
        source=Source("facts", str(turn.id)),
        said_by=Provenance.AGENT if turn.by_user and is_typed(turn.prompt) else Provenance.USER_PASTED,
        member=turn.through,
        evidence=turn.evidence[:6],
        files=paths(turn.files),
        outcome=CORRECTED if turn.corrected else "",
        task=clipped(turn.task, 160),
        before=memory_id("turn", str(turn.before)) if turn.before is not None else "",
        elsewhere=turn.elsewhere[: ELSEWHERE + 1],
    )


SAYS_LITTLE = 20
"""Characters of a prompt below which the turn is called by its answer: "commit"."""


def _title(turn: Turn, asked: str, said: str) -> str:
    """What a turn is called."""
    if said and length_of(asked) < SAYS_LITTLE and "?" not in asked:
        return next(plain_sentences(said[: rules.GIST]), asked)
    called = titled(turn.prompt)
    return asked if called == turn.prompt else called


def _answers(turn: Turn, most: int, *, why: bool = True) -> str:
    """What so many characters keep of a turn's answers, in order: the last one, and as far as there is room earlier
    ones, and what was said on the way of `why` something is so, which stands before them."""
    kept: list[str] = []
    for each in (turn.answer, *reversed(turn.earlier), *(reversed(turn.reasons) if why else ())):
        if (text := each.strip()) and most > 0:
            kept.insert(0, clipped(text, most))
            most -= len(text)
    return "\n\n".join(kept)


def _decided(decisions: tuple[EpisodeDecision, ...]) -> Iterator[str]:
    """A line for each decision, with whose it is, as far as each origin has room: none can be read on from another."""
    left = dict.fromkeys((each.said_by for each in decisions), DECIDED)
    for each in decisions:
        if left[each.said_by] > 0:
            said = f"{'Cause: ' if each.kind == 'cause' else ''}{' '.join(each.text.split())}"
            how = "Said" if each.kind == "finding" else "Decided"
            yield f"{how} ({words_to_all(each.said_by)}): {clipped(said, left[each.said_by])}"
            left[each.said_by] -= len(said)


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
        f"Files: {listed(episode.files)}" if episode.files else "",
        f"Left open: {'; '.join(thread.text for thread in episode.threads)}" if episode.threads else "",
        *_decided(episode.decisions),
    )
    return Memory(
        id=memory_id("episode", str(episode.id)),
        kind="episode",
        bucket="EPISODIC",
        title=one_line(episode.description, rules.TITLE),
        gist=one_line(
            f"{first_sentences(episode.description, 160)} → {key_sentences(said, 200)}"
            if said
            else episode.description,
            rules.GIST,
        ),
        text=clipped("\n".join(p for p in parts if p), EPISODE),
        search_text=search_text(
            clipped(episode.description, 600),
            clipped(episode.problem, 500),
            clipped(said, 900),
            clipped(" ".join(each.text for each in episode.decisions), DECIDED),
            clipped(" ".join(("left open", *(thread.text for thread in episode.threads))), 400)
            if episode.threads
            else "",
            " ".join((*episode.error_types[:6], *episode.symbols[:10])),
            f"{episode.task_type} {outcome}",
            listed(episode.files),
            context(episode.location, at),
        ),
        location=episode.location or NOWHERE,
        locations=(episode.location or NOWHERE,),
        sessions=(clipped(episode.stream, 160),),
        importance=rules.episode_importance(episode),
        confidence=1.0,
        status="record",
        occurred_at=at,
        first_at=at,
        last_at=end,
        source=Source("episodes", str(episode.id)),
        member=episode.through,
        said_by=Provenance.AGENT,
        evidence=episode.evidence[:8],
        files=paths(episode.files),
        error_types=tuple(clipped(t, 80) for t in episode.error_types[:8]),
        signatures=tuple(clipped(s, 64) for s in episode.signatures[:16]),
        outcome=outcome,
        task=clipped(episode.task, 160),
        elsewhere=episode.elsewhere[: ELSEWHERE + 1],
    )


def _of_section(section: SectionWritten) -> Memory:
    document = "/".join(section.path.split("/")[-2:])
    head = f"{document}, {section.heading}" if section.heading else document
    return memory_of(
        "document",
        str(section.id),
        "facts",
        bucket="SEMANTIC",
        title=head,
        gist=f"{section.heading or document}: {key_sentences(section.text, rules.GIST)}",
        lines=(f"{head}:", section.text),
        searched=(head, section.text, listed(section.names)),
        where=(section.location or NOWHERE,),
        first_at=int(section.occurred_at),
        at=int(section.occurred_at),
        importance=rules.DOCUMENT_IMPORTANCE,
        sessions=(clipped(section.stream, 160),),
        evidence=section.evidence,
        files=(section.path, *section.names),
        said_by=Provenance.AGENT,
        member=section.through,
    )


def _way_out(best: Solution) -> str:
    fix, why = fix_and_why(best.approach, best.description)
    lines = [
        f"Fix: {fix} (held {best.successes} of {best.uses})" if fix else "",
        f"Why: {why}" if why and fix else "",
        f"Edited: {listed(best.files)}" if best.files else "",
    ]
    return "\n".join(filter(None, lines))


def of_bug_pattern(pattern: BugPattern) -> Memory:
    """The memory of a kind of error."""
    types = ", ".join(pattern.error_types)
    message = pattern.message or pattern.template
    head = one_line(f"{types}: {message}" if types and not message.startswith(types) else message or types, 300)
    solutions = pattern.solutions
    best = solutions[0] if solutions else None
    way_out = _way_out(best) if best is not None else ""
    unseen = "" if best is None or best.approach else ", nothing shows how"
    return memory_of(
        "bug_pattern",
        pattern.signature,
        "bug_patterns",
        bucket="FACT",
        title=head,
        gist=f"{one_line(head, 180)} → {best.approach}" if best and best.approach else head,
        lines=(head, f"Seen {pattern.occurrences}×, fixed {pattern.resolutions}×{unseen}", way_out),
        searched=(
            head,
            clipped(pattern.template, 400),
            way_out,
            listed(pattern.frames),
            listed(names(pattern.files)),
            " ".join(names(pattern.commands)[:3]),
            " ".join((*names(pattern.file_types), *names(pattern.frameworks))),
        ),
        where=names(pattern.locations),
        first_at=pattern.first_seen,
        at=pattern.last_seen,
        importance=rules.bug_importance(pattern.occurrences, best.success_rate if best else None),
        confidence=best.success_rate if best else 0.5,
        sessions=names(pattern.sessions),
        evidence=tuple(s.span for s in pattern.evidence),
        files=names(pattern.files),
        error_types=pattern.error_types,
        signatures=(pattern.signature,),
        outcome="solved" if best is not None and best.successes else "unsolved",
    )


def _of_knowledge(knowledge: VerifiedKnowledge) -> Memory:
    head = knowledge.claims[0]
    shown = [c for c in knowledge.claims if _whose(c) == _whose(head) or not _of_themselves(c)]
    standing = [c for c in shown if not c.superseded_by][:5]
    replaced = [c for c in shown if c.superseded_by][:5]
    own = [c for c in standing if _whose(c) == _whose(head)]
    lines = [c.text if c in own else f"{c.text} ({_whose(c)})" for c in standing]
    lines += [f"Before: {c.text} ({_dates(c)}; {_whose(c)})" for c in replaced]
    text = clipped("\n".join(dict.fromkeys(lines)), rules.TEXT)
    return Memory(
        id=memory_id("knowledge", knowledge.id),
        kind="knowledge",
        bucket=rules.bucket_of(head.kind),
        title=one_line(head.text, rules.TITLE),
        gist=one_line(" ".join(dict.fromkeys(c.text for c in own)), rules.GIST),
        text=text,
        search_text=search_text(
            text, head.kind, knowledge.subject.replace("/", " "), context(knowledge.location, head.last_seen)
        ),
        location=knowledge.location,
        locations=places((knowledge.location,)),
        sessions=(),
        importance=rules.knowledge_importance(head.kind, head.confidence, RIGHTS[head.said_by].as_users),
        confidence=head.confidence,
        status="conflicted" if knowledge.status == "conflicted" else "verified",
        occurred_at=head.last_seen,
        first_at=knowledge.first_seen,
        last_at=knowledge.last_seen,
        source=Source("verified_knowledge", knowledge.id),
        said_by=head.said_by,
        confirmed=head.confirmed,
        member=head.member,
        evidence=tuple(s for c in (*standing, *replaced) for s in c.evidence)[:8],
        files=paths(dict.fromkeys(f for c in standing for f in c.files)),
    )


def _of_themselves(claim: VerifiedClaim) -> bool:
    """Whether a member of the team says it of themselves: it stands in no memory of anybody else's word."""
    return claim.said_by is Provenance.MEMBER and not claim.confirmed and is_personal(claim.text, claim.kind)


def _whose(claim: VerifiedClaim) -> str:
    return words_of(claim.said_by, confirmed=claim.confirmed, member=claim.member)


def _dates(claim: VerifiedClaim) -> str:
    since = day_of(claim.valid_from)[:10]
    until = day_of(claim.valid_until)[:10] if claim.valid_until is not None else ""
    return f"{since} to {until}" if until else f"since {since}"
