"""Draw prompts of real sessions and print what memory would have told the agent at each, to be read one by one.

    MEMCTL_DATA_DIR=… python tests/eval/prompts.py [COUNT]

It asks a memctl that has read the sessions. Each prompt is asked as of its own time, among the memories of its own
project from before its session began: of earlier sessions only. Prompts of a first session are left out, as
are those that no hook asks with. The draw is by a hash of the prompt's event.
"""

from __future__ import annotations

import argparse
import hashlib
from datetime import datetime
from itertools import islice

from memctl.api.assist.recall import MOST_MEMORIES, SHORTEST_PROMPT
from memctl.api.reading.caller import OWNER
from memctl.api.reading.places import places_of
from memctl.api.reading.reader import Reader, Readers
from memctl.api.reading.views import Found
from memctl.api.search.engine import Engine, Question
from memctl.domain.support.text import estimate_tokens
from memctl.infra.embedders import embedders_of
from memctl.infra.settings import load_settings

SEED = 1

PROMPTS = """
WITH begun AS (SELECT stream, min(occurred_at) AS at FROM memctl.events WHERE session_id <> '' GROUP BY 1)
SELECT e.event_id::text, e.payload->>'text', e.occurred_at, begun.at, e.location
FROM memctl.events AS e JOIN begun USING (stream)
WHERE e.type = 'prompt.submitted' AND e.location <> '' AND e.payload IS NOT NULL
  AND NOT coalesce((e.payload->>'meta')::boolean, false)
"""


def told(
    reader: Reader, engine: Engine, prompt: str, at: datetime, began: datetime, location: str
) -> list[Found] | None:
    """What a hook would have told; None where the project had no earlier session."""
    places = places_of(reader, None, location)
    earlier = int(began.timestamp() * 1_000_000)
    asked = Question(query=prompt[:4000], places=places, now=at, limit=2 * MOST_MEMORIES, before=earlier)
    found = engine.search(reader, asked).results
    if not found:
        return None
    return [each for each in found if each.class_ != "none"][:MOST_MEMORIES]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=60)
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args()
    settings = load_settings()
    if settings.database_url is None:
        parser.error("no memctl runs here: `memctl up`, then `memctl ingest` the sessions")
    readers = Readers(settings.database_url, settings.space)
    engine = Engine(settings.qdrant_url, settings.qdrant_api_key, embedders_of(settings), settings.space)
    engine.warm_up()

    def show(reader: Reader) -> None:
        rows = [row for row in reader.connection.execute(PROMPTS) if len(row[1].strip()) >= SHORTEST_PROMPT]
        rows.sort(key=lambda row: hashlib.sha256(f"{given.seed}:{row[0]}".encode()).digest())
        asked = ((row, told(reader, engine, *row[1:])) for row in rows if not row[1].lstrip().startswith("/"))
        tokens = spoken = 0
        for number, (row, found) in enumerate(islice((x for x in asked if x[1] is not None), given.count), 1):
            print(f"{number}. {row[4]} {row[2]:%Y-%m-%d %H:%M}\n   asked {row[1][:600]!r}")
            spoken += bool(found)
            for each in found or ():
                tokens += estimate_tokens(each.text)
                print(f"   {each.class_} {each.score:.2f} {each.kind} {each.occurred_at:%Y-%m-%d} {each.text[:500]!r}")
            print()
        print(f"told at {spoken}, {tokens} tokens in all")

    try:
        readers.read(show, OWNER)
    finally:
        engine.close()
        readers.close()


if __name__ == "__main__":
    main()
