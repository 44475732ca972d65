"""What a legacy row claims, as events: statements with their store as origin, and what code-memory's hooks saw.

Nothing is concluded: a field without a place in memctl's events stays out, a figure without one goes into words.
A row's key is its table, its id and its times, so importing twice adds nothing, and a row that changed is stated again.
"""

from collections.abc import Callable
from typing import Any, cast, get_args

import msgspec
import orjson

from memctl.domain.events.event import Micros, NewEvent, Payload, derived_of
from memctl.domain.events.facts import InsightKind
from memctl.domain.events.observations import (
    NoticeReceived,
    Observation,
    PromptSubmitted,
    ResponseReceived,
    session_stream,
    transcript_key,
)
from memctl.domain.knowledge.graduation import SHORTEST, length_of
from memctl.domain.language.notes import LONGEST_NOTE, NOTES, MemoryNoted
from memctl.domain.support.location import in_another_memory, normalise
from memctl.domain.support.provenance import IMPORTED
from memctl.infra.transcripts.fields import count, identifier, items, kind, mapping, micros, string

CODE_MEMORY = "code-memory"

Made = tuple[list[NewEvent], str, str]
"""Events, or the kind that the row is left out as; and what of it could not be kept."""

_SAID = {"user_prompt": "user", "agent_response": "agent", "session_summary": "system"}
_KINDS = get_args(InsightKind)


def table_of(row: dict[str, Any], name: str) -> str:
    """The table that a row is of: by its own fields where they show it, else by the name of what holds it."""
    if _first(row, "event_type", "eventType") in _SAID:
        return "events"
    if _first(row, "insight_type", "insightType"):
        return "insights"
    if name in TABLES:
        return name
    if _first(row, "table") in TABLES:
        return string(row["table"])
    if _name_of(row) and any(field in row for field in ("interaction_count", "sentiment", "topics", "topics_json")):
        return "entity_profiles" if "entity_name" in row else "bot_memory"
    if string(row.get("content")) and "memory_type" in row:
        return "knowledge_nodes"
    if string(row.get("content")) and ("category" in row or "source_url" in row):
        return "collected_info"
    return ""


def events_of(table: str, row: dict[str, Any], number: int) -> Made:
    """What a row becomes."""
    making = TABLES.get(table)
    if making is None:
        return [], kind(table) if table else "unknown row", ""
    return making(table, row, number)


def _key(table: str, row: dict[str, Any], number: int) -> str:
    """Of the row's own id and times, which hold nothing of what it says."""
    own = identifier(str(_first(row, "id", "uuid") or f"#{number}"))
    times = [str(_moment(row, name)) for name in (_CREATED, _CHANGED)]
    return f"import:{table}:{own}:{':'.join(times)}"


_CREATED = ("created_at", "createdAt", "first_seen_at", "timestamp", "collected_at")
_CHANGED = ("last_updated", "updated_at", "last_interaction_at", "last_interaction", "last_seen")


def _moment(row: dict[str, Any], names: tuple[str, ...]) -> Micros:
    """The first of these times that there is: ISO 8601, or seconds or milliseconds since 1970."""
    for name in names:
        value = row.get(name)
        if found := micros(value):
            return found
        if seconds := count(value):
            return Micros(seconds * (1_000 if seconds > 100_000_000_000 else 1_000_000))
    return Micros(0)


def _first(row: dict[str, Any], *names: str) -> Any:
    return next((row[name] for name in names if row.get(name) not in (None, "")), None)


def _words(value: Any) -> tuple[str, ...]:
    """A list of words: a list, JSON of one, or words between commas."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return ()
    found = value.split(",") if isinstance(value, str) else items(value)
    return tuple(word.strip()[:100] for word in found if isinstance(word, str) and word.strip())[:16]


def _share(value: Any) -> float | None:
    """A number from 0 to 1, else None."""
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    return float(number) if number is not None and 0 <= number <= 1 else None


def _event(payload: Payload, key: str, stream: str, occurred_at: Micros) -> NewEvent:
    return NewEvent(stream=stream, payload=payload, occurred_at=occurred_at, dedupe_key=key, actor="tool")


# --- what a bot kept (bot_memory, collected_info and their like) ---


def _note(table: str, row: dict[str, Any], number: int) -> Made:
    """A text that was kept: `collected_info`, `good_examples`, `knowledge_nodes`, and code-memory's `insights`."""
    text = string(_first(row, "content", "text", "response", "example")).strip()
    title = string(row.get("title")).strip()
    if title and title not in text:
        text = f"{title}: {text}"
    if length_of(text) < SHORTEST:
        return [], kind(table, "too short"), ""
    why = "" if len(text) <= LONGEST_NOTE else f"cut at {LONGEST_NOTE:,} of {len(text):,} characters"
    type = string(_first(row, "insight_type", "insightType", "memory_type"))
    tags = (string(row.get("category")), type if type not in _KINDS else "", *_words(row.get("tags")))
    confidence = _share(row.get("confidence"))
    noted = MemoryNoted(
        text=text[:LONGEST_NOTE],
        kind=cast(Any, type) if type in _KINDS else "",
        confidence=0.7 if confidence is None else confidence,
        importance=_share(row.get("importance")),
        tags=tuple(tag for tag in tags if tag)[:16],
        origin=CODE_MEMORY if table == "insights" else table,
    )
    return [_event(noted, _key(table, row, number), NOTES, _moment(row, _CREATED))], "", why


def _name_of(row: dict[str, Any]) -> str:
    return string(_first(row, "entity_name", "bot_name", "name", "username", "author")).strip()[:200]


def _profile(table: str, row: dict[str, Any], number: int) -> Made:
    """Somebody whom the bot met, in words: `bot_memory`, `entity_profiles`."""
    name = _name_of(row)
    if not name:
        return [], "", "names nobody"
    entity = "a person" if row.get("entity_type") in ("user", "human", "person") else "an agent"
    platform = string(row.get("platform")).strip()[:100]
    interests = _words(_first(row, "interests_json", "interests", "topics_json", "topics"))
    words = (
        string(_first(row, "summary", "description")).strip(),
        f"interests: {', '.join(interests)}" if interests else "",
        _figures(row),
    )
    called = string(row.get("display_name")).strip()[:200]
    who = f"{called} ({name})" if called and called != name else name
    said = ". ".join(filter(None, words))
    noted = MemoryNoted(
        text=f"{who} is {entity}{f' of {platform}' if platform else ''}. {said}".strip()[:LONGEST_NOTE],
        kind="profile",
        confidence=0.7,
        origin=table,
    )
    return [_event(noted, _key(table, row, number), NOTES, _moment(row, _CHANGED) or _moment(row, _CREATED))], "", ""


def _figures(row: dict[str, Any]) -> str:
    """What else a profile says, in words."""
    words = [string(_first(row, "personality_notes", "notes"))[:1000]]
    if met := count(row.get("interaction_count")):
        words.append(f"{met} interactions")
    if (feeling := string(row.get("sentiment"))) and feeling != "neutral":
        words.append(f"sentiment: {feeling[:40]}")
    return "; ".join(filter(None, words))


# --- what code-memory exported ---


def _seen(table: str, row: dict[str, Any], number: int) -> Made:
    """A prompt, an answer or a summary that code-memory's hooks had stored."""
    said = string(_first(row, "event_type", "eventType"))
    session = identifier(_first(row, "session_id", "sessionId"))
    text = string(row.get("content")).strip()
    if not session:
        return [], "", "names no session"
    if said not in _SAID or not text:
        return [], kind(table, said or "empty"), ""
    line = identifier(_first(row, "id", "dedupe_key", "dedupeKey")) or f"#{number}"
    about = _metadata(row)
    model = string(about.get("model"))
    payload: Observation
    if said == "user_prompt":
        payload = PromptSubmitted(text=text, line=line, model=model)
    elif said == "agent_response":
        payload = ResponseReceived(text=text, line=line, model=model)
    else:
        payload = NoticeReceived(kind="summary", text=text, line=line, model=model)
    event = NewEvent(
        stream=session_stream(CODE_MEMORY, session),
        payload=payload,
        occurred_at=_moment(row, _CREATED),
        dedupe_key=transcript_key(CODE_MEMORY, session, line, 0),
        actor=_SAID[said],
        location=normalise(string(_first(about, "cwd", "project_path", "projectPath"))),
        session_id=session,
        brought=True,
    )
    return [event], "", ""


def _metadata(row: dict[str, Any]) -> dict[str, Any]:
    value = row.get("metadata")
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return {}
    return mapping(value)


# --- what other memories keep ---


def _kept(
    origin: str, text: str, title: str, at: Micros, *, project: str = "", place: str = "", tags: tuple[str, ...] = ()
) -> Made:
    """A text that another memory holds. Its key is of its words, and of what that memory calls its project: under
    whatever id it comes again, it is known, and stays forgotten."""
    text, title = text.strip(), title.strip()
    if title and title not in text:
        text = f"{title}: {text}"
    if length_of(text) < SHORTEST:
        return [], kind(origin, "too short"), ""
    why = "" if len(text) <= LONGEST_NOTE else f"cut at {LONGEST_NOTE:,} of {len(text):,} characters"
    text = text[:LONGEST_NOTE]
    noted = MemoryNoted(text=text, confidence=0.7, tags=tuple(tag[:100] for tag in tags if tag)[:16], origin=origin)
    event = _event(noted, f"import:{origin}:{derived_of('import', project, text)}", NOTES, at)
    location = normalise(place) or in_another_memory(project)
    return [msgspec.structs.replace(event, actor=IMPORTED, location=location)], "", why


def _written(table: str, row: dict[str, Any], number: int) -> Made:
    """A section of a Markdown note: Claude Code's, basic-memory's."""
    origin = "claude-code-memory" if row.get("project") else "basic-memory"
    tags = (string(row.get("type")), *_words(row.get("tags")))
    text, title, project, place = (string(row.get(name)) for name in ("text", "title", "project", "place"))
    return _kept(origin, text, title, _moment(row, ("at",)), project=project[:200], place=place, tags=tags)


def _observed(table: str, row: dict[str, Any], number: int) -> Made:
    """What claude-mem's model wrote of a use of a tool, or of a session: it names projects, and no paths."""
    if table == "observations":
        text = string(_first(row, "narrative", "text")) or "; ".join(_texts(row.get("facts")))
        title, tags = string(row.get("title")), (string(row.get("type")),)
    else:
        text = " ".join(filter(None, (string(row.get(name)).strip() for name in ("learned", "completed"))))
        title, tags = string(row.get("request")), ("summary",)
    project = string(_first(row, "merged_into_project", "project"))
    at = _moment(row, ("created_at", "created_at_epoch"))
    return _kept("claude-mem", text, title if text else "", at, project=project[:200], tags=tags)


def _texts(value: Any) -> list[str]:
    """The texts of a list in JSON."""
    try:
        return [each for each in items(orjson.loads(string(value))) if isinstance(each, str)]
    except orjson.JSONDecodeError:
        return []


def _changed(table: str, row: dict[str, Any], number: int) -> Made:
    """What mem0 holds last of a memory."""
    if row.get("is_deleted") or row.get("event") == "DELETE" or not string(row.get("new_memory")):
        return [], kind(table, "deleted"), ""
    return _kept("mem0", string(row["new_memory"]), "", _moment(row, ("updated_at", "created_at")))


def _left_out(table: str, row: dict[str, Any], number: int) -> Made:
    """Edges between rows, feelings, and the store's own bookkeeping."""
    return [], kind(table), ""


TABLES: dict[str, Callable[[str, dict[str, Any], int], Made]] = {
    "bot_memory": _profile,
    "entity_profiles": _profile,
    "collected_info": _note,
    "good_examples": _note,
    "knowledge_nodes": _note,
    "events": _seen,
    "insights": _note,
    "markdown_notes": _written,
    "observations": _observed,
    "session_summaries": _observed,
    "history": _changed,
    "user_prompts": _left_out,
    "sdk_sessions": _left_out,
    "knowledge_edges": _left_out,
    "memory_sessions": _left_out,
    "sentiment_history": _left_out,
    "consolidation_log": _left_out,
    "sessions": _left_out,
}
"""The tables that are known, and how their rows are read."""
