"""The short form of `make unseen`: what real tools print on broken input, mangled, in transcripts of every client."""

from __future__ import annotations

import random
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest
from events import as_read
from transcript_files import format_of, parse_file
from unseen.__main__ import LINES, session
from unseen.tools import RECIPES, mangled, outputs

from memctl.domain.events.event import Event
from memctl.domain.session.stream_facts import derive
from memctl.infra.redaction import prepare

BYTES_A_CPU_SECOND = 1_000_000
"""What is read, redacted and folded at least, with `STARTING_S` for what each text costs at first."""

STARTING_S = 2.0

SEED = 20261124


@pytest.fixture(scope="module")
def printed() -> list[tuple[str, str]]:
    """Commands and what they printed: those of Python, which is here wherever this runs."""
    found = list(outputs([], [recipe for recipe in RECIPES if recipe.needs == sys.executable][:10]))
    assert len(found) >= 8
    return found


@pytest.mark.parametrize("client", LINES)
def test_what_nobody_wrote_rules_for_is_folded_in_time_and_alike_in_any_order(
    client: str, printed: list[tuple[str, str]], tmp_path: Path
) -> None:
    luck = random.Random(f"{SEED} {client}")
    for number in range(12):
        (_, output), (_, other) = luck.choice(printed), luck.choice(printed)
        file = tmp_path / f"{number}.jsonl"
        file.write_bytes(session(client, number, [mangled(output, other, luck)[:1_000_000]], luck))
        began = time.process_time()
        format = format_of(file)
        assert format is not None
        events = [prepare(event) for parsed in parse_file(file, format) for event in parsed.events]
        streams: dict[str, list[Event]] = defaultdict(list)
        for position, event in enumerate(events, 1):
            streams[event.stream].append(as_read(event, position))
        facts = {stream: derive(stream, of_it).drain() for stream, of_it in streams.items()}
        took = time.process_time() - began
        assert took < STARTING_S + file.stat().st_size / BYTES_A_CPU_SECOND
        assert sum(map(len, facts.values())) > 0
        for stream, of_it in streams.items():
            luck.shuffle(of_it)
            assert derive(stream, of_it).drain() == facts[stream]
