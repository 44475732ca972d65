"""A turn while it goes on: a prompt, and what answered it so far."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

import msgspec

from memctl.domain.events.facts import KnowledgeHeld, Prompted, Span, Turn, fact_id
from memctl.domain.failures.explanations import reasons_in
from memctl.domain.knowledge.memory import lead_of
from memctl.domain.retrieval.hindsight import memory_words
from memctl.domain.support.bounded import one_line
from memctl.domain.support.mentions import distinctive_values_in

MOST_ANSWERS = 3
"""Answers of one turn that are kept; of more, the shortest of the earlier ones goes."""

MOST_REASONS, LONGEST_REASON = 2, 400
"""Words that lead over to the use of a tool and say why something is so which are kept, and characters of each."""

FILES, VALUES, WORDS = 20, 12, 64
"""Files that a turn worked on, values that its answer names, and words of what was asked, answered and worked on."""


class AnswerGiven(NamedTuple):
    """Words of the agent's, and the API message that they are of."""

    text: str
    span: Span
    message: str


class OpenTurn:
    """A prompt, and what answered it so far."""

    def __init__(self, prompt: Prompted, before: OpenTurn | None, *, by_user: bool) -> None:
        self.prompt = prompt
        self.by_user = by_user
        self.before = before.id if before is not None else None
        near = before if before is not None and before.prompt.location == prompt.location else None
        self.lead = lead_of(near.prompt.text, prompt.text) if near is not None else ""
        self.id: UUID = fact_id(prompt.stream, "turn", str(prompt.id))
        self.answers: list[AnswerGiven] = []
        """What the agent finished with, and its last words: it answers once more where something else than a prompt,
        as a notice, set it to work again."""
        self.reasons: list[AnswerGiven] = []
        """What it found out on the way: the newest words that lead over to a tool and say why something is so."""
        self._leading_over = 0
        """How many of the last of them only lead over to the use of a tool."""
        self.corrected = False
        """Whether the user's next words find fault with it."""
        self.files: dict[str, None] = {}
        self.elsewhere: tuple[str, ...] = ()
        self.dirty = True

    @property
    def answer(self) -> str:
        """The last words."""
        return self.answers[-1].text if self.answers else ""

    @property
    def report(self) -> str:
        """What it says of its work, the reasons that it gave on the way first."""
        return "\n\n".join(each.text for each in (*self.reasons, *self.answers))

    def answered(self, given: AnswerGiven) -> None:
        if self._leading_over:
            led = self.answers[-self._leading_over :]
            del self.answers[-self._leading_over :]
            said = (each._replace(text=reasons_in(each.text, LONGEST_REASON)) for each in led)
            self.reasons = [*self.reasons, *(each for each in said if each.text)][-MOST_REASONS:]
        self.answers = [each for each in self.answers if each.text != given.text]
        self.answers.append(given)
        if len(self.answers) > MOST_ANSWERS:
            self.answers.remove(min(self.answers[:-1], key=lambda each: len(each.text)))
        self._leading_over, self.dirty = 0, True

    def called(self, message: str) -> None:
        """The agent used a tool, in a message of that id: words of the same one were no answer. Where no id says which
        they are, the words before it were none."""
        if self.answers and not (message and self.answers[-1].message):
            self._leading_over = max(self._leading_over, 1)
            return
        led = next((n for n, each in enumerate(reversed(self.answers)) if each.message != message), len(self.answers))
        self._leading_over = max(self._leading_over, led)

    def fact(self) -> Turn:
        return Turn(
            id=self.id,
            stream=self.prompt.stream,
            occurred_at=self.prompt.occurred_at,
            location=self.prompt.location,
            through=self.prompt.through,
            evidence=(*self.prompt.evidence[:1], *(each.span for each in (*self.reasons, *self.answers))),
            prompt=self.prompt.text,
            answer=self.answer,
            earlier=tuple(each.text for each in self.answers[:-1]),
            reasons=tuple(each.text for each in self.reasons),
            task=self.prompt.task,
            files=tuple(self.files)[:FILES],
            prompt_id=self.prompt.id,
            by_user=self.by_user,
            before=self.before,
            lead=self.lead,
            elsewhere=self.elsewhere,
            corrected=self.corrected,
        )

    def held(self, turn: Turn) -> KnowledgeHeld:
        """What it leaves behind for later sessions, as its fact stands. That is small: it goes to the rows of many
        keys."""
        held = KnowledgeHeld(
            id=fact_id(turn.stream, "knowledge_held", str(self.prompt.id)),
            stream=turn.stream,
            occurred_at=turn.occurred_at,
            location=turn.location,
            through=turn.through,
            evidence=turn.evidence[-1:],
            turn=turn.id,
            files=turn.files,
            values=tuple(distinctive_values_in(turn.answer)[:VALUES]),
        )
        if not (held.files or held.values):
            return held
        words = memory_words(turn.prompt, turn.lead, turn.answer, turn.files)[:WORDS]
        return msgspec.structs.replace(held, text=one_line(turn.prompt, 200), words=words)
