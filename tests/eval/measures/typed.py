"""Typed against pasted: prompts that somebody labelled from their text alone (`typed.json` has who, and how)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from figures import Figure, Missing
from sessions import Data, unseen

from memctl.domain.events.observations import PromptSubmitted
from memctl.domain.language.prompt_origin import passages_of
from memctl.domain.language.prompts import said_in
from memctl.domain.support.provenance import Provenance

LABELS = Path(__file__).parents[1] / "typed.json"


def judged(prompt: str) -> str:
    """What the rules say of a prompt as a whole."""
    said = said_in(prompt)
    if said.by != "user":
        return "typed" if said.command == "!" else "client"
    kinds = {each.origin for each in passages_of(said.text) if said.text[each.start : each.end].strip()}
    if len(kinds) > 1:
        return "mixed"
    names = {Provenance.USER_TYPED: "typed", Provenance.USER_PASTED: "pasted", Provenance.CLIENT: "client"}
    return names[kinds.pop()] if kinds else "client"


def measure(data: Data) -> Iterator[Figure]:
    if not data.has_sessions:
        raise Missing("there are no sessions (agent-sessions.tar.xz)")
    labels = json.loads(LABELS.read_text(encoding="utf-8"))["sets"]
    yield from _figures("set 1 (tuned on)", data, labels["1"])
    with unseen(data) as other:
        if other is not None:
            yield from _figures("set 2", other, labels["2"])


def _figures(name: str, data: Data, labels: dict[str, list[str]]) -> Iterator[Figure]:
    of = {id: label for label, ids in labels.items() for id in ids}
    pairs = [
        (of[str(event.event_id)], judged(event.payload.text))
        for events in data.streams.values()
        for event in events
        if isinstance(event.payload, PromptSubmitted) and str(event.event_id) in of
    ]
    said = [label for label, verdict in pairs if verdict == "typed"]
    typed = [verdict for label, verdict in pairs if label == "typed"]
    client = [verdict for label, verdict in pairs if label == "client"]
    rest = [verdict for label, verdict in pairs if label in ("pasted", "mixed")]
    yield Figure(f"{name}: what is judged typed was", said.count("typed") / max(len(said), 1), len(said), 0.97)
    yield Figure("  what was typed is judged so", typed.count("typed") / max(len(typed), 1), len(typed))
    yield Figure("  the client's is judged so", client.count("client") / max(len(client), 1), len(client))
    yield Figure("  pasted or mixed is noticed", 1 - rest.count("typed") / max(len(rest), 1), len(rest))
