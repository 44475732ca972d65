"""What a line of an episode says is found by its meaning, and shown, on the real vector server and embedder."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from asked import Remembered, remembered
from events import observed

from memctl.api.reading.caller import OWNER
from memctl.api.reading.places import Places
from memctl.api.reading.reader import Readers
from memctl.api.reading.views import Found
from memctl.api.search.engine import Engine, Question
from memctl.domain.events.event import NewEvent
from memctl.domain.events.observations import PromptSubmitted, ResponseReceived
from memctl.infra.embedders import Embedders

EVERYWHERE = Places(None, "everywhere", None)
CLOCK = "Cron reads `TZ` once, when it starts: jobs begin an hour too early in winter, because clocks went back."
OTHERS = [
    f"`{name}` is read whole for each page, because nobody keeps what it held."
    for name in ("Ledger.rows", "Mailer.hosts", "Rates.of", "Archive.pack", "Report.fonts", "Export.digest",
                 "Bank.names", "Paper.sizes", "Tax.tables", "Day.marks", "Cost.places", "Unit.labels",
                 "Town.codes", "Road.names", "Ship.crates", "Card.types", "Coin.kinds")
]  # fmt: skip
ANSWERS = (OTHERS[:6], [*OTHERS[6:11], CLOCK], OTHERS[11:])
QUESTION = "Which time zone does the export of the ledger use?"


def history() -> list[NewEvent]:
    said: list[tuple[type[PromptSubmitted | ResponseReceived], str, str]] = []
    for asked, found in zip(
        ("Why is the export of the ledger slow?", "And what else?", "Is that all?"), ANSWERS, strict=True
    ):
        said.append((PromptSubmitted, "user", asked))
        said.append((ResponseReceived, "agent", "\n".join(f"- {each}" for each in found)))
    said.append((PromptSubmitted, "user", "Thanks, that explains it!"))
    return [
        observed(kind(line=f"l-{number}", text=text), session="s1", at=60 * number, actor=actor, location="/w/ledger")
        for number, (kind, actor, text) in enumerate(said)
    ]


@pytest.fixture(scope="module")
def memory(postgres_server: str, migrated_template: str, vectors: tuple[str, str]) -> Iterator[Remembered]:
    with remembered(postgres_server, migrated_template, vectors, events=history()) as found:
        yield found


def search(memory: Remembered, text: str, kinds: tuple[str, ...] = ()) -> list[Found]:
    engine = Engine(memory.qdrant_url, memory.qdrant_api_key, Embedders())
    engine.warm_up()
    readers = Readers(memory.database_url, "default", size=1)
    asked = Question(
        query=text, places=EVERYWHERE, now=datetime(2026, 3, 10, tzinfo=UTC), on_request=True, explain=True, kinds=kinds
    )
    try:
        return readers.read(lambda reader: engine.search(reader, asked), OWNER).results
    finally:
        readers.close()
        engine.close()


def test_a_line_that_answers_in_other_words_is_what_is_shown_of_its_episode(memory: Remembered) -> None:
    found = search(memory, QUESTION, kinds=("episode",))[0]
    assert len(found.text) > len(found.passage) > len(CLOCK)
    assert CLOCK in found.passage


def test_an_episode_is_one_result_however_many_of_its_lines_are_near(memory: Remembered) -> None:
    found = search(memory, "What in the ledger is slow, and why?")
    assert len({each.id for each in found}) == len(found)
    assert sum(each.kind == "episode" and "export" in each.title for each in found) == 1
