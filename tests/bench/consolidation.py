"""How long consolidation takes, and how much memory, as memories grow. Texts are drawn, a tenth of them near copies.

    python tests/bench/consolidation.py [COUNT…]      (10,000 and 100,000 unless said)

The memories are rows put in place by COPY; what is measured is a preview of a round over them.
"""

from __future__ import annotations

import itertools
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import msgspec
import servers

from memctl.infra.database import connect
from memctl.infra.log.migrate import migrate
from memctl.infra.readmodels import generations
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.settings import load_settings
from memctl.projections.memory_rows import Memory, Source
from memctl.workers.processors.consolidator import plan
from memctl.workers.processors.runner import ProcessorContext, model

SYLLABLES = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in ("ar", "el", "in", "os", "ut") for c in "bdfgklmnpt"]
VOCABULARY = [one + other for one in SYLLABLES for other in SYLLABLES[:50]]
OFTEN = list(itertools.accumulate(1 / (rank + 10) for rank in range(len(VOCABULARY))))
"""Words come as often as in a language: the n-th most frequent about 1/n of the time (Zipf)."""


def drawn(count: int) -> Iterator[Memory]:
    luck = random.Random(7)
    texts: list[str] = []
    for number in range(count):
        if texts and number % 10 == 0:
            words = luck.choice(texts[-1_000:]).split()
            words[luck.randrange(len(words))] = luck.choice(VOCABULARY)
            text = " ".join(words)
        else:
            text = " ".join(luck.choices(VOCABULARY, cum_weights=OFTEN, k=luck.randint(30, 160)))
        texts.append(text)
        yield Memory(
            id=f"{number:036d}", kind="turn", bucket="EPISODIC", title=text[:60], gist=text[:480], text=text,
            search_text=text, location="/home/dana/shop", locations=("/home/dana/shop",), sessions=(), importance=0.5,
            confidence=1.0, status="record", occurred_at=number, first_at=number, last_at=number,
            source=Source("facts", str(number)),
        )  # fmt: skip


def measure(count: int) -> None:
    with servers.postgres_server() as server, servers.fresh_database(server) as url:
        migrate(url)
        with connect(url, name="bench") as connection, tempfile.TemporaryDirectory() as folder:
            os.environ |= {"MEMCTL_DATABASE_URL": url, "MEMCTL_DATA_DIR": folder}
            live = generations.ensure_live(connection, 1)
            rows = (((1, memory.id), "", msgspec.json.encode(memory)) for memory in drawn(count))
            readmodels.copy_rows(connection, model("memories"), live.stage2, rows)
            desk = ProcessorContext(connection, load_settings())
            base, began, spent = peak_mb(), time.monotonic(), time.process_time()
            found = plan(desk)
            seconds, cpu = time.monotonic() - began, time.process_time() - spent
    print(f"{count:,} memories: {seconds:.1f} s, {cpu:.1f} s of CPU ({cpu / count * 1e6:.0f} us a memory)", end="")
    print(f", peak {peak_mb():.0f} MB ({base:.0f} before), {len(found.changes)} changes", flush=True)


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    counts = [int(each) for each in sys.argv[1:]] or [10_000, 100_000]
    if len(counts) == 1:
        measure(counts[0])
    else:  # each in a process of its own: a peak is never given back
        for each in counts:
            subprocess.run([sys.executable, __file__, str(each)], check=True)
