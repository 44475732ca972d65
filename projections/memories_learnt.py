"""Memories of what the work shows by itself: strategies, projects, commits and reflections.

Only what is sure is a memory; a verb of its own returns the rest on request. None is returned for what is not sure.
"""

import msgspec

from memctl.domain.events.facts import Span
from memctl.domain.knowledge import memory as rules
from memctl.domain.knowledge.memory import day_of, key_sentences, place_of
from memctl.domain.projects.stack import language_of
from memctl.domain.support.bounded import names, one_line
from memctl.domain.support.provenance import Provenance
from memctl.projections.commits import Commit
from memctl.projections.memory_rows import Memory, listed, memory_of
from memctl.projections.project_digests import Often, ProjectDigest
from memctl.projections.reflections import Reflection
from memctl.projections.strategies import Strategy

_CLAIMS, _NAMES = 8, 6
"""Claims and files that a project's memory lists."""


def of_strategy(key: str, strategy: Strategy) -> Memory | None:
    """A lesson that enough work has taught."""
    if not strategy.enough:
        return None
    taught = names(strategy.sessions)
    by = f", distilled by {strategy.made_by}" if strategy.made_by else ""
    sources = len(strategy.sources)
    sessions = f"{sources} session{'s' if sources > 1 else ''}"
    lines = [strategy.title, strategy.description, f"{strategy.content} ({sessions}{by})"]
    return memory_of(
        "strategy",
        key,
        "strategies",
        bucket="SEMANTIC",
        title=strategy.title,
        gist=f"{strategy.title} → {strategy.content}",
        lines=lines,
        searched=(*lines, f"strategy {strategy.domain}"),
        where=(strategy.location,),
        first_at=strategy.first_seen,
        at=strategy.last_seen,
        importance=rules.strategy_importance(strategy.confidence, sources),
        said_by=Provenance.AGENT if strategy.made_by else Provenance.TOOL,
        confidence=strategy.confidence,
        sessions=taught,
        evidence=tuple(span for shown in strategy.tellings for span in shown.evidence)[:8],
    )


def of_project(key: str, digest: ProjectDigest) -> Memory | None:
    """What is sure of the project at a place: its languages, what holds there, where the work is done."""
    claims = sorted(digest.claims, key=lambda claim: (-claim.sessions, -claim.at, claim.id))[:_CLAIMS]
    files = digest.hot_files[:_NAMES]
    if not claims and not files:
        return None
    languages = list(dict.fromkeys(filter(None, (language_of(each.name) for each in digest.hot_files))))[:3]
    head = f"Project {place_of(digest.location)}"
    head += f" is written in {', '.join(languages)}" if languages else ""
    lines = [
        head,
        *(one_line(claim.text, 240) for claim in claims),
        f"Often changed: {', '.join(_counted(each) for each in files)}" if files else "",
    ]
    last = (each.last.span for each in files)
    spans = [*(span for claim in claims[:4] for span in claim.spans), *filter(None, last)]
    return memory_of(
        "project",
        key,
        "project_digests",
        bucket="SEMANTIC",
        title=head,
        gist=". ".join((head, *(claim.text for claim in claims))),
        lines=lines,
        searched=(*lines, "project overview stack structure"),
        where=(digest.location,),
        first_at=digest.first_seen,
        at=digest.last_seen,
        importance=0.6,
        sessions=tuple(dict.fromkeys(touch.session for touch in digest.touches))[:16],
        evidence=tuple(spans[:8]),
        files=[each.name for each in files],
    )


def of_commit(key: str, commit: Commit) -> Memory | None:
    """What a commit decided: one that gives its reasons, or that was taken back."""
    if not commit.subject or not (commit.why or commit.reverts):
        return None
    taken_back = [
        f"Taken back {day_of(each.at)[:10]}, as commit {each.id[:10]} says: {each.why or each.subject}"
        for each in commit.reverts
    ]
    head = f"{commit.subject} ({commit.id[:10]})"
    made = memory_of(
        "commit",
        key,
        "commits",
        bucket="SEMANTIC",
        title=commit.subject,
        gist=f"{commit.subject}: {key_sentences(commit.why, rules.GIST)}" if commit.why else commit.subject,
        lines=(head, *taken_back, commit.why),
        searched=(commit.subject, commit.why, *taken_back, listed(commit.files), " ".join(names(commit.tags))),
        where=(commit.location,),
        first_at=commit.at,
        at=max(commit.at, *(each.at for each in commit.reverts)) if commit.reverts else commit.at,
        importance=rules.COMMIT_IMPORTANCE,
        evidence=commit.evidence,
        files=commit.files,
        said_by=Provenance.HISTORY,
        outcome="taken back" if commit.reverts else "",
    )
    members = (commit.member, *(each.member for each in commit.reverts))
    return msgspec.structs.replace(made, member=next(filter(None, members), ""))


def of_reflection(key: str, reflection: Reflection) -> Memory:
    """What several memories show together. It rests on what they rest on."""
    return memory_of(
        "reflection",
        key,
        "reflections",
        bucket="SEMANTIC",
        title=reflection.title,
        gist=reflection.text,
        lines=(reflection.text,),
        searched=(reflection.title, reflection.text, " ".join(reflection.files)),
        where=(reflection.location,),
        first_at=reflection.occurred_at,
        at=reflection.occurred_at,
        importance=reflection.importance,
        confidence=0.7,
        evidence=tuple(Span(event) for event in reflection.sources),
        files=reflection.files,
    )


def _counted(each: Often) -> str:
    return f"{each.name} ({each.sessions} sessions)"
