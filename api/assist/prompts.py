"""What memory says at a prompt, or of a task that is handed to a subagent.

What is asked is not the prompt alone. "Yes, fix that" asks by what the session has just said, and by the files that it
is at; so a short prompt is asked together with those. Nothing is said twice in one session.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from memctl.api.assist.before import already_said
from memctl.api.assist.conversations import conversations, latest_first
from memctl.api.assist.lines import Line, line
from memctl.api.reading import models
from memctl.api.reading.pages import one, several
from memctl.api.reading.places import Places
from memctl.api.reading.reader import Reader
from memctl.api.reading.views import Found, Json
from memctl.api.search.engine import Engine, Question
from memctl.domain.events.recalls import quoted
from memctl.domain.failures.solutions import is_risky
from memctl.domain.knowledge.acting import acts
from memctl.domain.knowledge.memory import day_of, distinctive_words, is_chore, key_sentences
from memctl.domain.language.documents import files_named, named
from memctl.domain.support.provenance import MAY, Provenance, words_of
from memctl.projections.working_memory import WorkingMemory

MOST_MEMORIES, MOST_CONVERSATIONS = 3, 2
CONSIDERED = 20
"""Results of a search that are looked at for a prompt."""

CONVERSATION, PASSAGE = 900, 500
"""Characters of what one conversation came to, and of the part of another memory that is shown."""

SHORTEST_PROMPT, LEAST_DISTINCTIVE = 12, 4
"""Characters of a prompt that asks by itself, and its words beside those of chores: "commit and push this" asks nothing
of memory."""

SAID_BEFORE, IN_PLAY = 240, 6
"""Characters of what the session has just said, and its files, that a short prompt is asked together with."""


def for_prompt(
    reader: Reader, engine: Engine, payload: dict[str, Json], places: Places, stream: str, now: datetime,
    session: WorkingMemory | None = None,
) -> tuple[list[Line], list[Found]]:  # fmt: skip
    """What to say of a prompt, and all that was found for it. `session` is what is known of it by now: its row, where
    it is not given."""
    prompt = payload.get("prompt")
    if not isinstance(prompt, str) or prompt.lstrip().startswith(("/", "!")):
        return [], []
    row = session or one(reader, models.working_memory, stream)
    query = query_of(prompt, row)
    if not query:
        return [], []
    in_play = files_in_play(prompt, row)
    asked = Question(query=query, places=places, now=now, limit=CONSIDERED, in_play=in_play, settled=True)
    # What this session said itself its agent has before its eyes: this very prompt, for one.
    found = [
        each
        for each in engine.search(reader, asked).results
        if not each.evidence or any(evidence.source.session != payload.get("session_id") for evidence in each.evidence)
    ]
    said = already_said(reader, stream)
    sure = {each.id: each for each in found if each.class_ != "none" and each.id not in said}
    if sure and not asks_by_itself(prompt):
        sure = _about(reader, in_play, sure)
    if not sure:
        return [], found
    lessons = [each for each in sure.values() if each.kind not in ("turn", "episode") and _volunteered(each)]
    lines = [
        line(
            f"{each.occurred_at:%Y-%m-%d} {quoted(each.passage, PASSAGE)}", each.id, each.score, each.class_,
            origin=each.origin,
        )
        for each in lessons[:MOST_MEMORIES]
    ]  # fmt: skip
    return [*lines, *_conversations(reader, found, query, frozenset(sure), said)], found


def _about(reader: Reader, in_play: Sequence[str], found: Mapping[str, Found]) -> dict[str, Found]:
    """Those that are about a file at hand: the words of a conversation alone lead anywhere."""
    rows, at_hand = several(reader, models.memories, list(found)), frozenset(map(named, in_play))
    return {id: each for id, each in found.items() if id in rows and at_hand & set(map(named, rows[id].files))}


def _conversations(
    reader: Reader, found: Sequence[Found], query: str, sure: frozenset[str], said: frozenset[str]
) -> Iterator[Line]:
    """What the conversations came to that are sure, each behind what came later of its subject."""
    every = conversations(reader, found)
    kept = [each for each in every if each.id in sure][:MOST_CONVERSATIONS]
    others = [each for each in every if each not in kept and each.id not in said]
    for each in latest_first(kept, others)[: MOST_CONVERSATIONS + 1]:
        came_to = quoted(each.came_to(query, CONVERSATION), CONVERSATION + 100)
        text = f"{day_of(each.at)[:10]} {came_to}"
        yield line(text, each.id, each.score, each.class_, origin=words_of(Provenance.AGENT))


def _volunteered(each: Found) -> bool:
    """Whether a lesson may be given unasked: no fix that installs, downloads or widens rights, no document that asks
    for an action, and no agent's claim that nobody confirmed."""
    if each.kind == "document":
        return not acts(each.text)
    if each.kind in ("bug_pattern", "strategy", "code_rule") and is_risky(each.text):
        return False
    return each.kind == "knowledge" or not each.said_by or MAY[Provenance(each.said_by)].unasked != "never"


def query_of(prompt: str, session: WorkingMemory | None) -> str:
    """What a prompt asks memory: itself where it says enough, else together with what the session has just said; empty
    where neither says anything."""
    text = prompt.strip()
    if asks_by_itself(text):
        return text[:4_000]
    if session is None or not session.last_answer or is_chore(text):
        return ""
    before = key_sentences(session.last_answer, SAID_BEFORE)
    return f"{text}\n{before}\n{' '.join(files_in_play('', session))}" if distinctive_words(before) else ""


def asks_by_itself(prompt: str) -> bool:
    """Whether a prompt says what it is about."""
    return len(prompt.strip()) >= SHORTEST_PROMPT and distinctive_words(prompt) >= LEAST_DISTINCTIVE


def files_in_play(prompt: str, session: WorkingMemory | None) -> tuple[str, ...]:
    """The files that a prompt names, and those that the session changed last."""
    changed = [each.path for each in session.files if each.state != "read"] if session is not None else []
    return tuple(dict.fromkeys((*files_named(prompt[:4_000]), *changed[-IN_PLAY:][::-1])))
