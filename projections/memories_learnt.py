"""Memories of what the work shows by itself: code rules, strategies, entities and what ties them, feelings, projects,
and reflections.

Only what is sure is a memory; a verb of its own returns the rest on request. None is returned for what is not sure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memctl.domain.code.entities import parts_of
from memctl.domain.events.facts import Span
from memctl.domain.knowledge import memory as rules
from memctl.domain.knowledge.memory import day_of, key_sentences, place_of
from memctl.domain.language.mood import averaged, label_of
from memctl.domain.projects.stack import language_of
from memctl.domain.support.bounded import names, one_line
from memctl.domain.support.errors import MemctlError
from memctl.domain.support.provenance import Provenance
from memctl.projections.code_rules import CodeRule
from memctl.projections.commits import Commit
from memctl.projections.entities import Entity
from memctl.projections.memory_rows import Memory, listed, memory_of
from memctl.projections.project_digests import Often, ProjectDigest
from memctl.projections.reflections import Reflection
from memctl.projections.relations import Relation
from memctl.projections.sentiment import Feeling, Sentiment
from memctl.projections.strategies import Strategy

ENOUGH_SESSIONS, ENOUGH_WITH_VERSION = 3, 2
"""Sessions that must have named an entity which nobody described; fewer where a manifest named its version."""

EVERYBODYS = frozenset(("github.com", "api.github.com", "gitlab.com", "registry.npmjs.org", "pypi.org"))
"""Services that every project uses: it says nothing about a project that it uses one of them."""

ENOUGH_FEELINGS = 3
"""Feelings that a rule must have read before they say anything."""

_CLAIMS, _NAMES = 8, 6
"""Claims, and files or libraries, that a project's memory lists."""


def of_code_rule(key: str, rule: CodeRule) -> Memory | None:
    """A replacement that recurs and holds."""
    if rule.state not in ("active", "trusted"):
        return None
    before, after = rule.texts_ahead
    shown = [each for each in rule.sightings if each.forward == rule.forward]
    asked = any(each.asked for each in shown)
    language = "/".join(rule.languages) or "code"
    said = f"In {language}, write `{after}` instead of `{before}`" if after else f"In {language}, leave out `{before}`"
    seen_in = f"{len(rule.files)} files, {len(rule.sources)} sessions"
    lines = [f"{said} ({rule.state}: {seen_in}{', asked for by the user' if asked else ''})"]
    for each in shown[:2]:
        if each.line_before or each.line_after:
            lines.append(f"{one_line(each.line_before, 120)} → {one_line(each.line_after, 120)}")
    files = names(rule.files)
    return memory_of(
        "code_rule",
        key,
        "code_rules",
        bucket="SEMANTIC",
        title=said,
        lines=lines,
        searched=(*lines, f"code rule {rule.category} replace", listed(files)),
        where=names(rule.locations),
        first_at=rule.first_seen,
        at=rule.last_seen,
        importance=rules.rule_importance(rule.confidence, asked=asked),
        confidence=rule.confidence,
        sessions=names(rule.sessions),
        evidence=_spans([each.span for each in shown]),
        files=files,
        outcome=rule.state,
    )


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


def _described(entity: Entity) -> Iterator[str]:
    """What is known of an entity, a line each; empty where there is nothing of it."""
    yield one_line(entity.summary, 600)
    yield f"Interests: {', '.join(entity.interests)}" if entity.interests else ""
    yield one_line(entity.notes, 400)
    named = f"Named in {entity.interactions} sessions, by {', '.join(names(entity.sources))}"
    yield named if entity.interactions else ""
    yield f"Files: {', '.join(map(_tail, names(entity.files)[:_NAMES]))}" if entity.files else ""


def of_entity(key: str, entity: Entity) -> Memory | None:
    """A library, service or person that somebody described, or that several sessions named."""
    versions = names(entity.versions)
    enough = ENOUGH_WITH_VERSION if entity.kind == "library" and versions else ENOUGH_SESSIONS
    if not entity.descriptions and (entity.interactions < enough or entity.name in EVERYBODYS):
        return None
    platform = f" ({entity.platform})" if entity.platform else ""
    called = entity.display_name if entity.display_name == entity.name else f"{entity.display_name}, {entity.name},"
    head = f"{called} is a {entity.kind}{platform}"
    head += f", version {versions[0]}" if versions else ""
    lines = [head, *_described(entity)]
    # What an agent says of a thing holds where it said so, and nowhere else.
    by_agents = [each for each in entity.descriptions if each.by != "user"]
    if by_agents and not entity.interactions:
        return None
    described_at = entity.descriptions[0].at if entity.descriptions else 0
    return memory_of(
        "entity",
        key,
        "entities",
        bucket="PROFILE" if entity.kind in ("person", "agent") else "FACT",
        title=head,
        gist=f"{head}. {entity.summary}" if entity.summary else head,
        lines=lines,
        searched=lines,
        where=names(entity.locations),
        first_at=entity.first_seen or described_at,
        at=max(entity.last_seen, described_at),
        importance=rules.entity_importance(entity.interactions, described=bool(entity.descriptions)),
        said_by=Provenance.AGENT if by_agents else Provenance.TOOL,
        sessions=tuple(dict.fromkeys(each.stream for each in entity.mentions)),
        evidence=_spans([each.span for each in entity.mentions]),
        files=names(entity.files),
    )


def of_relation(key: str, relation: Relation) -> Memory | None:
    """An edge that somebody asserted. What commits and fixes tie together the graph adds up when it is asked."""
    if relation.said is None or relation.weight <= 0:
        return None
    source, target = relation.nodes[0], relation.nodes[-1]
    head = f"{_called(source)} {relation.relation.replace('_', ' ')} {_called(target)}"
    text = f"{head}: {relation.why}" if relation.why else head
    return memory_of(
        "relation",
        key,
        "relations",
        bucket="FACT",
        title=head,
        gist=text,
        lines=(text,),
        searched=(text, source, target),
        where=(relation.location,),
        first_at=relation.at,
        at=relation.at,
        importance=0.5,
        evidence=relation.evidence,
    )


def of_sentiment(key: str, row: Sentiment) -> Memory | None:
    """How users have felt about somebody, where enough showed it or somebody said it outright."""
    said = [each for each in row.path if each.by != "rule"]
    if not said and len(row.path) < ENOUGH_FEELINGS:
        return None
    score = averaged(each.score for each in reversed(row.path))
    head = f"Users feel {label_of(score)} about {_called(row.node)} ({score:+.1f})"
    lines = [head, *(_felt(each) for each in row.path[:5])]
    return memory_of(
        "sentiment",
        key,
        "sentiment",
        bucket="PROFILE",
        title=head,
        lines=lines,
        searched=(*lines, "feeling mood sentiment"),
        where=(row.location,),
        first_at=min(each.at for each in row.path),
        at=row.last_seen,
        importance=0.3,
        confidence=1.0 if said else 0.6,
        sessions=tuple(dict.fromkeys(each.stream for each in row.path if each.stream)),
        evidence=_spans([each.span for each in row.path]),
    )


def of_project(key: str, digest: ProjectDigest) -> Memory | None:
    """What is sure of the project at a place: its languages and libraries, what holds there, where the work is done."""
    claims = sorted(digest.claims, key=lambda claim: (-claim.sessions, -claim.at, claim.id))[:_CLAIMS]
    files = digest.hot_files[:_NAMES]
    used = [each for each in digest.used if each.name not in EVERYBODYS][:_NAMES]
    if not claims and not files:
        return None
    languages = list(dict.fromkeys(filter(None, (language_of(each.name) for each in digest.hot_files))))[:3]
    head = f"Project {place_of(digest.location)}"
    head += f" is written in {', '.join(languages)}" if languages else ""
    lines = [
        head,
        *(one_line(claim.text, 240) for claim in claims),
        f"Often changed: {', '.join(_counted(each) for each in files)}" if files else "",
        f"Uses {', '.join(_versioned(each) for each in used)}" if used else "",
    ]
    last = (each.last.span for each in (*files, *used))
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
    taken_back = [f"Taken back {day_of(each.at)[:10]}: {each.why or each.subject}" for each in commit.reverts]
    head = f"{commit.subject} ({commit.id[:10]})"
    return memory_of(
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


def _spans(found: Sequence[Span | None]) -> tuple[Span, ...]:
    return tuple(span for span in found if span is not None)[:8]


def _called(node: str) -> str:
    try:
        kind, _, name = parts_of(node)
    except MemctlError:
        return node
    return name if kind in ("library", "person", "agent", "service") else node


def _felt(feeling: Feeling) -> str:
    return f"{day_of(feeling.at)[:10]} {feeling.score:+.1f}: {one_line(feeling.words, 160)}"


def _tail(path: str) -> str:
    return "/".join(path.split("/")[-3:])


def _counted(each: Often) -> str:
    return f"{each.name} ({each.sessions} sessions)"


def _versioned(each: Often) -> str:
    return f"{each.name} {each.last.detail}".strip()
