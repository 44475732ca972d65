"""A turn while it goes on: a prompt, and what answered it so far."""

from __future__ import annotations

from uuid import UUID

from memctl.domain.events.facts import Prompted, Span, Turn, fact_id
from memctl.domain.knowledge.memory import lead_of


class OpenTurn:
    """A prompt, and what answered it so far."""

    def __init__(self, prompt: Prompted, before: OpenTurn | None) -> None:
        self.prompt = prompt
        self.before = before.id if before is not None else None
        self.lead = lead_of(before.prompt.text, prompt.text) if before is not None else ""
        self.id: UUID = fact_id(prompt.stream, "turn", str(prompt.id))
        self.answer = ""
        self.answered: Span | None = None
        self.files: dict[str, None] = {}
        self.dirty = True

    def fact(self) -> Turn:
        spans = self.prompt.evidence[:1]
        return Turn(
            id=self.id,
            stream=self.prompt.stream,
            occurred_at=self.prompt.occurred_at,
            location=self.prompt.location,
            evidence=(*spans, self.answered) if self.answered is not None else spans,
            prompt=self.prompt.text,
            answer=self.answer,
            task=self.prompt.task,
            files=tuple(self.files)[:20],
            prompt_id=self.prompt.id,
            before=self.before,
            lead=self.lead,
        )
