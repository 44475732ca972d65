"""Thousands of hostile inputs at every parser: what cannot be read is counted and said, and nothing else happens."""

from __future__ import annotations

import io
import json
import re
import time
from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest
from client_sessions import SAMPLES
from events import as_read
from histories import ROOT
from mangled import COUNT, HOOKS, SEED, Mangler, hook

from memctl.domain.events.event import Micros, NewEvent
from memctl.domain.session.stream_facts import derive
from memctl.infra.hook import header
from memctl.infra.hooks.payloads import parse_hook
from memctl.infra.hooks.spool import BadDelivery, decode_header
from memctl.infra.log.append import encode_payload
from memctl.infra.redaction import prepare_all, redact
from memctl.infra.transcripts.reading import Parsed, parse_document, parse_lines, raw_lines
from memctl.infra.transcripts.sniff import Reader, sniff_head

SLOWEST_S = 5.0
"""Of processor time, for a single input."""

READERS = list(SAMPLES)


def fit(events: Sequence[NewEvent]) -> list[NewEvent]:
    """The events as the log takes them: each can be stored, and stage 1 folds them."""
    prepared = prepare_all(events).events
    for event in prepared:
        stored = encode_payload(event)
        assert b"\\u0000" not in re.sub(rb"\\\\", b"", stored), "Postgres refuses NUL"
        orjson.loads(stored)  # valid UTF-8, no NaN
        for text in (event.stream, event.location, event.dedupe_key, event.session_id):
            assert "\0" not in text
            text.encode()
        assert event.stream.count("/") == 2
    by_stream: dict[str, list[NewEvent]] = {}
    for event in {each.dedupe_key: each for each in prepared}.values():
        by_stream.setdefault(event.stream, []).append(event)
    for stream, told in by_stream.items():
        derive(stream, [as_read(event, number) for number, event in enumerate(told, 1)]).drain()
    return prepared


def parsed(data: bytes, reader: Reader) -> list[Parsed]:
    format = reader(Path("/w/session.jsonl"))
    if hasattr(format, "split"):
        return list(parse_document(data, format))
    return list(parse_lines(raw_lines(io.BytesIO(data), limit=65_536), format))


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
def test_no_transcript_breaks_its_parser_or_what_folds_it(reader: Reader) -> None:
    mangler = Mangler(SEED + READERS.index(reader))
    redact("")  # its rules are compiled
    kept = 0
    for number in range(COUNT):
        other = SAMPLES[READERS[mangler.rng.randrange(len(READERS))]]
        data = mangler.lines(SAMPLES[reader], other)
        began = time.process_time()
        found = sniff_head(io.BytesIO(data))
        for each in {reader, found} - {None}:
            told = parsed(data, each)
            assert not told or told[-1].end == len(data), number
            kept += len(fit([event for line in told for event in line.events]))
        assert time.process_time() - began < SLOWEST_S, (number, data[:2000])
    assert kept > COUNT / 2, "what is honest is still read"


def test_no_hook_payload_breaks_its_parser_or_what_folds_it() -> None:
    mangler = Mangler(SEED + 100)
    kept = 0
    for number in range(COUNT * 3):
        name = mangler.rng.choice(sorted(HOOKS))
        sample = hook(name)
        data = mangler.json(sample) if mangler.rng.random() < 0.7 else mangler.bytes(json.dumps(sample).encode())
        agent = mangler.rng.choice(("claude-code", "codex", "gemini", "cursor", "opencode"))
        told = parse_hook(data, f"{number:032x}", Micros(1_772_452_800_000_000 + number), agent, name)
        assert bool(told.events) + bool(told.kind) + bool(told.why) == 1
        kept += len(fit(told.events))
    assert kept > COUNT


def test_no_header_of_a_delivery_breaks_the_door() -> None:
    mangler = Mangler(SEED + 200)
    sample = header("0" * 32, 1_772_452_800_000_000, "claude-code", "Stop", 3)
    refused = 0
    for _ in range(COUNT * 10):
        try:
            delivery, size = decode_header(mangler.bytes(sample) if mangler.rng.random() < 0.5 else mangler.json(
                json.loads(sample)))  # fmt: skip
        except BadDelivery:
            refused += 1
        else:
            assert re.fullmatch("[0-9a-f]{32}", delivery.id)
            assert size >= 0
    assert refused > COUNT


def test_no_text_breaks_redaction_and_what_was_cut_is_cut_once() -> None:
    mangler = Mangler(SEED + 300)
    samples = [path.read_bytes()[:4000] for path in sorted((ROOT / "infra/redaction/shapes/noseyparker").glob("*.yml"))]
    cut = 0
    for _ in range(COUNT):
        data = mangler.bytes(mangler.rng.choice(samples), mangler.rng.choice(samples))
        began = time.process_time()
        once, counts = redact(data.decode("utf-8", mangler.rng.choice(("replace", "surrogateescape", "ignore"))))
        assert time.process_time() - began < SLOWEST_S
        once.encode()
        cut += bool(counts)
        again, more = redact(once)
        assert (again, more) == (once, {}), "what is left when secrets are cut holds no other"
    assert cut > COUNT / 4
