"""What memory says at a prompt, or of a task that is handed to a subagent.

What is asked is not the prompt alone. "Yes, fix that" asks by what the session has just said, and by the files that it
is at; so a short prompt is asked together with those. Nothing is said twice in one session.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from posixpath import basename
from typing import NamedTuple

from memctl.api.assist.before_tool import already_said
from memctl.api.assist.commits import commits_for
from memctl.api.assist.conversations import SAYS, Conversation, conversations, latest_first, weights_of, with_answer
from memctl.api.assist.earlier_work import earlier_work
from memctl.api.assist.lines import Line, line
from memctl.api.reading import models
from memctl.api.reading.pages import one, several
from memctl.api.reading.places import Places
from memctl.api.reading.reader import Reader
from memctl.api.reading.views import Found, Json
from memctl.api.search.engine import Engine, Question
from memctl.domain.events.recalls import PassedOverFor, Silence, quoted
from memctl.domain.failures.signatures import errors_in
from memctl.domain.knowledge.acting import acts
from memctl.domain.knowledge.memory import day_of, distinctive, is_chore, key_sentences
from memctl.domain.knowledge.orders import might_be_obeyed, only_names
from memctl.domain.language.documents import files_named, named
from memctl.domain.language.plans import plan_in
from memctl.domain.support.mentions import numbered_in
from memctl.domain.support.provenance import OF_THE_TEAM, RIGHTS, Provenance, words_of
from memctl.infra.settings_model import InjectionLimits
from memctl.projections.working_memory import WorkingMemory

MOST_MEMORIES, MOST_CONVERSATIONS = 2, 2
CONSIDERED = 20
"""Results of a search that are looked at for a prompt."""

PASSAGE = 300
"""Characters of the part of another memory than a conversation that is shown."""

MOST_FILES = 3
"""Files that are named of what an earlier session built."""

LIKELY, RELATED, LEAST, LEADS, WEAK = 0.35, 0.18, 0.25, 1.1, 1.5
"""How likely a likely conversation answers a prompt that is meant; how likely any one does, with what score, where it
holds so many times as much of it as those of other subjects: a likely one, and a weak one. By set 1, where none of 408
prompts asked in another project is spoken to; sde-bench's right ones have .19, those of another project at most .14."""

SHORTEST_PROMPT, LEAST_DISTINCTIVE = 12, 4
"""Characters of a prompt that asks by itself, and its words beside those of chores: "commit and push this" asks nothing
of memory."""

LONGEST, LOOKED_FOR = 4_000, 2_000
"""Characters of a prompt by which what was found is judged, and by which it is looked for."""

SAID_BEFORE, IN_PLAY = 240, 6
"""Characters of what the session has just said, and its files, that a short prompt is asked together with."""


_OWN = (Provenance.USER_TYPED, Provenance.MEMBER, Provenance.TOOL)
"""Whose claims are a user's word, or put in memctl's own words."""


class ForPrompt(NamedTuple):
    """What to say of a prompt, all that was found for it, and why what is not said is not."""

    lines: list[Line]
    found: list[Found]
    left: Mapping[str, PassedOverFor]
    silent: Silence = ""


def for_prompt(
    reader: Reader, engine: Engine, payload: dict[str, Json], places: Places, stream: str, now: datetime,
    limits: InjectionLimits, session: WorkingMemory | None = None,
) -> ForPrompt:  # fmt: skip
    """What to say of a prompt. `session` is what is known of it by now: its row, where it is not given."""
    prompt = payload.get("prompt")
    if not isinstance(prompt, str) or prompt.lstrip().startswith(("/", "!")):
        return ForPrompt([], [], {})
    if plan_in(prompt) is not None:
        # Who sends a plan has looked before, and says more than those came to who built its parts.
        return ForPrompt([], [], {}, "nothing asked")
    row = session or one(reader, models.working_memory, stream)
    query = query_of(prompt, row)
    if not query:
        return ForPrompt([], [], {}, "nothing asked")
    in_play = files_in_play(prompt, row)
    asked = Question(
        query=ends(query, LOOKED_FOR), places=places, now=now, limit=CONSIDERED, in_play=in_play, settled=True,
        asking=reader.member,
    )  # fmt: skip
    own = payload.get("session_id")
    found = [each for each in engine.search(reader, asked).results if not _is_before_its_eyes(each, own)]
    said = already_said(reader, stream)
    at_hand = frozenset(named(each.path) for each in row.files) if row is not None else frozenset[str]()
    alone = asks_by_itself(prompt)
    sure = _sure(reader, found, said, in_play, alone=alone)
    lessons = list(_lessons(reader, prompt, sure.values()))
    lines = lessons[:MOST_MEMORIES]
    if alone:
        lines += commits_for(reader, prompt, found, said)
        earlier = _conversations(reader, query, found, said)
        lines += earlier or earlier_work(reader, query, found, said, at_hand)
    kept = [each for each in lines if each.memory.score >= limits.min_score]
    left = {each.id: _why_left(each, sure, alone=alone) for each in found}
    left |= _why_not_said(reader, found, lessons[MOST_MEMORIES:], lines, kept)
    left |= dict.fromkeys((each.id for each in found if each.id in said), "said before")
    return ForPrompt(kept, found, left, "" if found else "nothing found")


def _why_left(each: Found, sure: Collection[str], *, alone: bool) -> PassedOverFor:
    """Why something that was found is not said, by what it is."""
    if each.kind in _TALK:
        return "short prompt" if not alone else "weak" if each.class_ == "none" else "no lead"
    if each.class_ == "none":
        return "weak"
    if each.id not in sure:
        return "short prompt"
    if each.kind == "bug_pattern":
        return "another error"
    return "an order" if each.kind == "document" or might_be_obeyed(each.text) else "unconfirmed"


def _why_not_said(
    reader: Reader, found: Sequence[Found], beyond: Sequence[Line], lines: Sequence[Line], kept: Sequence[Line]
) -> dict[str, PassedOverFor]:
    """Why something is not said for what else is: there was `beyond` enough, or a line has too low a score."""
    left: dict[str, PassedOverFor] = {each.memory.id: "enough said" for each in beyond}
    left |= {each.memory.id: "below limit" for each in lines if each not in kept}
    return left | dict.fromkeys(_of_their_sessions(reader, found, kept), "same session")


def _of_their_sessions(reader: Reader, found: Sequence[Found], lines: Sequence[Line]) -> list[str]:
    """Those of what was found whose session a line is of."""
    if not lines or not found:
        return []
    rows = several(reader, models.memories, [each.memory.id for each in lines])
    said = {session for row in rows.values() for session in row.sessions[:1]}
    talk = [each.id for each in found if each.kind in ("turn", "episode") and each.id not in rows]
    of_found = several(reader, models.memories, talk) if talk else {}
    return [id for id, row in of_found.items() if not said.isdisjoint(row.sessions[:1])]


def _is_before_its_eyes(each: Found, session: Json) -> bool:
    """Whether an agent sees a memory anyhow, as its own session said it: this very prompt, for one."""
    return bool(each.evidence) and all(evidence.source.session == session for evidence in each.evidence)


def _lessons(reader: Reader, prompt: str, sure: Iterable[Found]) -> Iterator[Line]:
    """What is given beside conversations and commits, which are given by rules of their own."""
    shown = {each.signature for each in errors_in(prompt, "", failed=False)}
    for each in sure:
        if each.kind not in _TALK and volunteered(reader, each, shown):
            text = f"{each.occurred_at:%Y-%m-%d} {quoted(_of_one(each), PASSAGE)}"
            yield line(text, each.id, each.score, each.class_, origin=each.origin)


def _of_one(each: Found) -> str:
    """What is shown of a memory. Of knowledge beside which members said something, or whose end with their names is cut
    off, the first line: who is named by the memory said it."""
    lines = each.text.splitlines() if each.kind == "knowledge" else []
    others = f"{OF_THE_TEAM})" in each.text or each.text.endswith("…")
    return lines[0] if len(lines) > 1 and others else each.passage


_TALK = ("turn", "episode", "commit")
"""Kinds that are given by rules of their own, not as lessons."""


def _sure(
    reader: Reader, found: Sequence[Found], said: Collection[str], in_play: Sequence[str], *, alone: bool
) -> dict[str, Found]:
    """What was found that may be given and was not yet; where a prompt does not ask by itself, about a file at hand."""
    sure = {each.id: each for each in found if each.id not in said and each.class_ != "none"}
    if alone or not sure:
        return sure
    # The words of a conversation alone lead anywhere.
    rows, at_hand = several(reader, models.memories, list(sure)), frozenset(map(named, in_play))
    return {id: each for id, each in sure.items() if id in rows and at_hand & set(map(named, rows[id].files))}


def _conversations(reader: Reader, prompt: str, found: Sequence[Found], said: Collection[str]) -> list[Line]:
    """What the conversation that is meant came to, behind what came later of its subject: each turn's words under its
    own id, and none that this session was given, be it of a copy."""
    every = conversations(reader, found, prompt)
    kept = _meant(prompt, every)
    others = [each for each in every if each not in kept]
    given = {row.text for row in several(reader, models.memories, list(said)).values()} if kept else set()
    weight = weights_of(prompt, found) if kept else {}
    lines = []
    for each in latest_first(kept, others)[:MOST_CONVERSATIONS]:
        files = [path for path in each.built(prompt) if only_names(path) and basename(path) not in prompt][:MOST_FILES]
        for turn, text in with_answer(reader, each, weight):
            if turn.text in given:
                continue
            given.add(turn.text)
            where = f"; edited for it: {quoted(', '.join(files), 300)}" if files else ""
            files = []
            corrected = f"; {turn.outcome}" if turn.kind == "turn" and turn.outcome else ""
            text = f"{day_of(turn.occurred_at)[:10]} {quoted(text, SAYS)}{where}{corrected}"
            origin = words_of(Provenance.AGENT, member=turn.member, asking=reader.member)
            lines.append(line(text, turn.id, each.score, each.class_, origin=origin))
    return lines


def _meant(prompt: str, every: Sequence[Conversation]) -> list[Conversation]:
    """The likeliest of the conversations that a prompt may mean."""
    return sorted((each for each in every if is_meant(prompt, each)), key=lambda each: -each.chance)[:1]


def is_meant(prompt: str, each: Conversation) -> bool:
    """Whether a prompt means a conversation: it likely answers, or it may and holds what nothing else that was found
    does. Who names an issue means what holds its number."""
    if numbers := numbered_in(prompt):
        return any(numbers & numbered_in(turn.text) for turn in each.turns)
    if each.class_ != "none" and each.chance >= LIKELY:
        return True
    lead = LEADS if each.class_ != "none" else WEAK
    return each.chance >= RELATED and each.score >= LEAST and each.lead >= lead


def volunteered(reader: Reader, each: Found, shown: Collection[str]) -> bool:
    """Whether a lesson may be given unasked: no document that asks for an action, no error but one that is `shown`, no
    agent's claim that nobody confirmed, and no order that the user did not type. What a member of a team said is given
    to that member alone."""
    if each.kind == "bug_pattern":
        return each.source.key in shown
    of_others = each.kind != "knowledge" or each.said_by not in _OWN
    if of_others and not each.confirmed and might_be_obeyed(each.text):
        return False
    if each.kind == "document":
        return not acts(each.text)
    if each.said_by == Provenance.MEMBER and not each.confirmed:
        return bool(each.member) and each.member == reader.member
    return each.kind == "knowledge" or not each.said_by or RIGHTS[Provenance(each.said_by)].unasked != "never"


def query_of(prompt: str, session: WorkingMemory | None) -> str:
    """What a prompt asks memory: itself where it says enough, else together with what the session has just said; empty
    where neither says anything."""
    text = prompt.strip()
    if asks_by_itself(text):
        return ends(text, LONGEST)
    if session is None or not session.last_answer or is_chore(text):
        return ""
    before = key_sentences(session.last_answer, SAID_BEFORE)
    return f"{text}\n{before}\n{' '.join(files_in_play('', session))}" if distinctive(before) else ""


def ends(text: str, most: int) -> str:
    """A text without its middle: who pastes something asks before it or behind it."""
    return text if len(text) <= most else f"{text[: most // 2]}\n{text[-(most // 2 - 1) :]}"


def asks_by_itself(prompt: str) -> bool:
    """Whether a prompt says what it is about."""
    return len(prompt.strip()) >= SHORTEST_PROMPT and len(distinctive(prompt)) >= LEAST_DISTINCTIVE


def files_in_play(prompt: str, session: WorkingMemory | None) -> tuple[str, ...]:
    """The files that a prompt names, and those that the session changed last."""
    changed = [each.path for each in session.files if each.state != "read"] if session is not None else []
    return tuple(dict.fromkeys((*files_named(prompt[:4_000]), *changed[-IN_PLAY:][::-1])))
