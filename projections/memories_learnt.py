"""Memories of what the work shows by itself: code rules, strategies, entities and what ties them, feelings, projects,
and reflections.

Only what is sure is a memory; a verb of its own returns the rest on request. None is returned for what is not sure.
"""

from __future__ import annotations

from collections.abc import Sequence

from memctl.domain.code.entities import parts_of
from memctl.domain.events.facts import Span
from memctl.domain.knowledge import memory as rules
from memctl.domain.knowledge.memory import day_of, memory_id, place_of, search_text
from memctl.domain.language.mood import averaged, label_of
from memctl.domain.projects.stack import language_of
from memctl.domain.support.bounded import clipped, names, one_line
from memctl.domain.support.errors import MemctlError
from memctl.projections.code_rules import CodeRule
from memctl.projections.entities import Entity
from memctl.projections.memory_rows import Memory, Source, context, listed, paths, places
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
    seen_in = f"{len(rule.files)} files, {len(rule.sessions)} sessions"
    lines = [f"{said} ({rule.state}: {seen_in}{', asked for by the user' if asked else ''})"]
    for each in shown[:2]:
        if each.line_before or each.line_after:
            lines.append(f"{one_line(each.line_before, 120)} → {one_line(each.line_after, 120)}")
    files, where = names(rule.files), names(rule.locations)
    at = where[0] if where else ""
    return Memory(
        id=memory_id("code_rule", key),
        kind="code_rule",
        bucket="SEMANTIC",
        title=one_line(said, rules.TITLE),
        gist=one_line(said, rules.GIST),
        text=clipped("\n".join(lines), rules.TEXT),
        search_text=search_text(
            *lines, f"code rule {rule.category} replace", listed(files), context(at, rule.last_seen)
        ),
        location=at,
        locations=places(where),
        sessions=names(rule.sessions),
        importance=rules.rule_importance(rule.confidence, asked=asked),
        confidence=rule.confidence,
        status="record",
        occurred_at=rule.last_seen,
        first_at=rule.first_seen,
        last_at=rule.last_seen,
        source=Source("code_rules", key),
        evidence=_spans([each.span for each in shown]),
        files=paths(files),
        outcome=rule.state,
    )


def of_strategy(key: str, strategy: Strategy) -> Memory | None:
    """A lesson that enough work has taught."""
    if not strategy.enough:
        return None
    where, taught = strategy.location, names(strategy.sessions)
    by = f", distilled by {strategy.made_by}" if strategy.made_by else ""
    sessions = f"{len(taught)} session{'s' if len(taught) > 1 else ''}"
    lines = [strategy.title, strategy.description, f"{strategy.content} ({sessions}{by})"]
    return Memory(
        id=memory_id("strategy", key),
        kind="strategy",
        bucket="SEMANTIC",
        title=one_line(strategy.title, rules.TITLE),
        gist=one_line(f"{strategy.title} → {strategy.content}", rules.GIST),
        text=clipped("\n".join(line for line in lines if line), rules.TEXT),
        search_text=search_text(*lines, f"strategy {strategy.domain}", context(where, strategy.last_seen)),
        location=where,
        locations=places((where,)),
        sessions=taught,
        importance=rules.strategy_importance(strategy.confidence, len(taught)),
        confidence=strategy.confidence,
        status="record",
        occurred_at=strategy.last_seen,
        first_at=strategy.first_seen,
        last_at=strategy.last_seen,
        source=Source("strategies", key),
        evidence=tuple(span for shown in strategy.tellings for span in shown.evidence)[:8],
    )


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
    lines = [
        head,
        one_line(entity.summary, 600),
        f"Interests: {', '.join(entity.interests)}" if entity.interests else "",
        one_line(entity.notes, 400),
        f"Named in {entity.interactions} sessions, by {', '.join(names(entity.sources))}"
        if entity.interactions
        else "",
        f"Files: {', '.join(map(_tail, names(entity.files)[:_NAMES]))}" if entity.files else "",
    ]
    described_at = entity.descriptions[0].at if entity.descriptions else 0
    where = names(entity.locations)
    at = where[0] if where else ""
    last = max(entity.last_seen, described_at)
    return Memory(
        id=memory_id("entity", key),
        kind="entity",
        bucket="PROFILE" if entity.kind in ("person", "agent") else "FACT",
        title=one_line(head, rules.TITLE),
        gist=one_line(f"{head}. {entity.summary}" if entity.summary else head, rules.GIST),
        text=clipped("\n".join(line for line in lines if line), rules.TEXT),
        search_text=search_text(*lines, context(at, last)),
        location=at,
        locations=places(where),
        sessions=tuple(dict.fromkeys(each.stream for each in entity.mentions)),
        importance=rules.entity_importance(entity.interactions, described=bool(entity.descriptions)),
        confidence=1.0,
        status="record",
        occurred_at=last,
        first_at=entity.first_seen or described_at,
        last_at=last,
        source=Source("entities", key),
        evidence=_spans([each.span for each in entity.mentions]),
        files=paths(names(entity.files)),
    )


def of_relation(key: str, relation: Relation) -> Memory | None:
    """An edge that somebody asserted. What commits and fixes tie together the graph adds up when it is asked."""
    if relation.said is None or relation.weight <= 0:
        return None
    source, target = relation.nodes[0], relation.nodes[-1]
    head = f"{_called(source)} {relation.relation.replace('_', ' ')} {_called(target)}"
    text = f"{head}: {relation.why}" if relation.why else head
    return Memory(
        id=memory_id("relation", key),
        kind="relation",
        bucket="FACT",
        title=one_line(head, rules.TITLE),
        gist=one_line(text, rules.GIST),
        text=clipped(text, rules.TEXT),
        search_text=search_text(text, source, target, context(relation.location, relation.at)),
        location=relation.location,
        locations=places((relation.location,)),
        sessions=(),
        importance=0.5,
        confidence=1.0,
        status="record",
        occurred_at=relation.at,
        first_at=relation.at,
        last_at=relation.at,
        source=Source("relations", key),
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
    return Memory(
        id=memory_id("sentiment", key),
        kind="sentiment",
        bucket="PROFILE",
        title=one_line(head, rules.TITLE),
        gist=one_line(head, rules.GIST),
        text=clipped("\n".join(lines), rules.TEXT),
        search_text=search_text(*lines, "feeling mood sentiment", context(row.location, row.last_seen)),
        location=row.location,
        locations=places((row.location,)),
        sessions=tuple(dict.fromkeys(each.stream for each in row.path if each.stream)),
        importance=0.3,
        confidence=1.0 if said else 0.6,
        status="record",
        occurred_at=row.last_seen,
        first_at=min(each.at for each in row.path),
        last_at=row.last_seen,
        source=Source("sentiment", key),
        evidence=_spans([each.span for each in row.path]),
    )


def of_project(key: str, digest: ProjectDigest) -> Memory | None:
    """What is sure of the project at a place: its languages and libraries, what holds there, where the work is done."""
    claims = sorted(digest.claims, key=lambda claim: (-claim.sessions, -claim.at, claim.id))[:_CLAIMS]
    files = digest.hot_files[:_NAMES]
    used = [each for each in digest.used if each.name not in EVERYBODYS][:_NAMES]
    if not claims and not files:
        return None
    name = place_of(digest.location)
    languages = list(dict.fromkeys(filter(None, (language_of(each.name) for each in digest.hot_files))))[:3]
    head = f"Project {name}"
    head += f" is written in {', '.join(languages)}" if languages else ""
    lines = [
        head,
        *(one_line(claim.text, 240) for claim in claims),
        f"Often changed: {', '.join(_counted(each) for each in files)}" if files else "",
        f"Uses {', '.join(_versioned(each) for each in used)}" if used else "",
    ]
    spans = [span for claim in claims[:4] for span in claim.spans]
    spans += [each.last.span for each in (*files, *used) if each.last.span is not None]
    return Memory(
        id=memory_id("project", key),
        kind="project",
        bucket="SEMANTIC",
        title=one_line(head, rules.TITLE),
        gist=one_line(". ".join((head, *(claim.text for claim in claims))), rules.GIST),
        text=clipped("\n".join(line for line in lines if line), rules.TEXT),
        search_text=search_text(*lines, "project overview stack structure", context(digest.location, digest.last_seen)),
        location=digest.location,
        locations=places((digest.location,)),
        sessions=tuple(dict.fromkeys(touch.session for touch in digest.touches))[:16],
        importance=0.6,
        confidence=1.0,
        status="record",
        occurred_at=digest.last_seen,
        first_at=digest.first_seen,
        last_at=digest.last_seen,
        source=Source("project_digests", key),
        evidence=tuple(spans[:8]),
        files=paths(each.name for each in files),
    )


def of_reflection(key: str, reflection: Reflection) -> Memory:
    """What several memories show together. It rests on what they rest on."""
    return Memory(
        id=memory_id("reflection", key),
        kind="reflection",
        bucket="SEMANTIC",
        title=one_line(reflection.title, rules.TITLE),
        gist=one_line(reflection.text, rules.GIST),
        text=clipped(reflection.text, rules.TEXT),
        search_text=search_text(
            reflection.title,
            reflection.text,
            " ".join(reflection.files),
            context(reflection.location, reflection.occurred_at),
        ),
        location=reflection.location,
        locations=places((reflection.location,)),
        sessions=(),
        importance=reflection.importance,
        confidence=0.7,
        status="record",
        occurred_at=reflection.occurred_at,
        first_at=reflection.occurred_at,
        last_at=reflection.occurred_at,
        source=Source("reflections", key),
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
