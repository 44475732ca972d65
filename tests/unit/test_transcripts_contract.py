"""What every reader of transcripts keeps to, whatever its format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import client_sessions
import pytest
from client_sessions import SAMPLES
from hypothesis import given, settings
from hypothesis import strategies as st
from transcript_files import parse_file

from memctl.domain.events.event import NewEvent
from memctl.domain.events.observations import Observation
from memctl.infra.redaction import prepare_all
from memctl.infra.transcripts.files import discover
from memctl.infra.transcripts.formats import Document
from memctl.infra.transcripts.reading import START, Parsed, Transcript
from memctl.infra.transcripts.sniff import READERS, Reader, sniff

every_reader = pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
DOCUMENTS = tuple(reader for reader in READERS if hasattr(reader, "split"))
TEXTS = ("SpecStory", "Aider")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("transcripts") / "session.txt"


def read(reader: Reader, data: bytes, path: Path) -> list[Parsed]:
    path.write_bytes(data)
    return list(parse_file(path, reader(path)))


def events_of(parsed: list[Parsed]) -> list[NewEvent]:
    return [event for line in parsed for event in line.events]


def accounted(parsed: list[Parsed], size: int) -> None:
    """Every byte in one line, every line with one outcome, every event fit to be stored."""
    assert [line.offset for line in parsed] == [0, *(line.end for line in parsed[:-1])][: len(parsed)]
    assert [line.number for line in parsed] == list(range(1, len(parsed) + 1))
    if size:
        assert parsed[-1].end == size
    for line in parsed:
        assert bool(line.events) == (line.outcome == "events")
        assert bool(line.kind) == (line.outcome == "ignored")
        assert bool(line.why) or line.outcome != "bad"
    prepare_all(events_of(parsed))


@every_reader
def test_a_session_is_known_by_its_content_and_tells_who_said_what(reader: Reader, path: Path) -> None:
    parsed = read(reader, SAMPLES[reader], path)
    assert sniff(path) is reader
    accounted(parsed, len(SAMPLES[reader]))
    assert not [line.why for line in parsed if line.why]
    events = events_of(parsed)
    assert {event.stream.split("/")[1] for event in events} == {reader.agent}
    assert {event.type for event in events} >= {"prompt.submitted", "response.received", "tool.called"}
    said = {event.actor for event in events if event.type == "prompt.submitted"}
    # In Markdown, what an agent prints may look like a prompt.
    assert ("import" if reader.agent in ("specstory", "aider") else "user") in said


@every_reader
def test_reading_twice_or_under_another_name_tells_the_same(reader: Reader, path: Path, tmp_path: Path) -> None:
    first = events_of(read(reader, SAMPLES[reader], path))
    assert first == events_of(read(reader, SAMPLES[reader], tmp_path / "renamed"))
    keys = [event.dedupe_key for event in first]
    by_key = {event.dedupe_key: event for event in first}
    assert all(by_key[key] == event for key, event in zip(keys, first, strict=True)), "one key, two events"


@every_reader
def test_ends_of_lines_and_a_byte_order_mark_change_nothing(reader: Reader, path: Path) -> None:
    first = read(reader, SAMPLES[reader], path)
    told = read(reader, b"\xef\xbb\xbf" + SAMPLES[reader].replace(b"\n", b"\r\n"), path)
    assert sniff(path) is reader
    assert events_of(told) == events_of(first)
    assert [(line.outcome, line.why) for line in told] == [(line.outcome, line.why) for line in first]


@every_reader
def test_each_event_names_a_line_and_block_of_its_own(reader: Reader, path: Path) -> None:
    for event in events_of(read(reader, SAMPLES[reader], path)):
        assert isinstance(event.payload, Observation)
        assert event.payload.line
        assert event.dedupe_key.endswith(f":{event.payload.line}:{event.payload.block}")


@every_reader
def test_a_file_that_grows_tells_what_the_whole_tells(reader: Reader, path: Path) -> None:
    data = SAMPLES[reader]
    whole = {event.dedupe_key: event for event in events_of(read(reader, data, path))}
    cuts = range(0, len(data), 101) if reader.__name__ not in TEXTS else (n for n, b in enumerate(data) if b == 10)
    told: set[str] = set()
    for cut in cuts:
        parsed = read(reader, data[:cut], path)
        accounted(parsed, cut)
        # The last record of a text may be under way: it is told again when it is whole.
        for line in parsed[:-1] if reader.__name__ in TEXTS else parsed:
            for event in line.events:
                assert whole[event.dedupe_key] == event
                told.add(event.dedupe_key)
        for event in events_of(parsed):
            assert event.stream in {known.stream for known in whole.values()}
    if reader not in DOCUMENTS or reader.__name__ in TEXTS:
        assert len(told) > len(whole) / 2


@pytest.mark.parametrize("write", [
    lambda n: client_sessions.gemini_document(client_sessions.GEMINI_MESSAGES[:n]),
    lambda n: client_sessions.opencode(client_sessions.OPENCODE_MESSAGES[:n]),
    lambda n: client_sessions.swe_agent(client_sessions.SWE_STEPS[:n]),
])  # fmt: skip
def test_a_document_that_is_written_anew_tells_what_it_told_and_more(write: Any, path: Path) -> None:
    path.write_bytes(write(20))
    reader = sniff(path)
    assert reader
    whole = {event.dedupe_key: event for event in events_of(read(reader, write(20), path))}
    before = 0
    for n in range(1, 6):
        told = {event.dedupe_key: event for event in events_of(read(reader, write(n), path))}
        assert told.items() <= whole.items()
        assert len(told) >= before
        before = len(told)
    assert before == len(whole)


@every_reader
def test_what_was_read_is_not_read_again_until_it_changes(reader: Reader, path: Path) -> None:
    path.write_bytes(SAMPLES[reader])
    with Transcript(path) as transcript:
        *_, last = transcript.parse(reader(path))
        at = transcript.checkpoint(last)
        middle = next(iter(transcript.parse(reader(path))))
        partly = transcript.checkpoint(middle)
    with Transcript(path) as transcript:
        assert transcript.resume(at, reader(path)) == at
        if reader in DOCUMENTS:  # a document holds as a whole: what was read in part is read again
            assert transcript.resume(partly, reader(path)) == START
    changed = SAMPLES[reader].replace(b"total", b"sum_1").replace(b"cart", b"card")
    path.write_bytes(changed)
    with Transcript(path) as transcript:
        assert transcript.resume(at, reader(path)) == START


@every_reader
@pytest.mark.parametrize(
    "odd", [b"", b"\n", b"\0" * 50, b"\xff\xfe{}", b"[" * 3000, b'{"' * 500, b"{}", b"[]\n", b"17"]
)
def test_odd_files_are_accounted_for(reader: Reader, odd: bytes, path: Path) -> None:
    accounted(read(reader, odd, path), len(odd))
    accounted(read(reader, SAMPLES[reader] + odd, path), len(SAMPLES[reader] + odd))


@every_reader
def test_nuls_surrogates_and_huge_texts_are_kept_as_far_as_they_can_be_stored(reader: Reader, path: Path) -> None:
    text = SAMPLES[reader].decode()
    for odd in ("\\u0000", "\\ud800", "x" * 300_000) if "\\" not in text or text[0] == "{" else ("\0", "x" * 300_000):
        parsed = read(reader, text.replace("cart", "ca" + odd).encode("utf-8", "surrogatepass"), path)
        assert events_of(parsed)
        for event in prepare_all(events_of(parsed)).events:
            stored = getattr(event.payload, "text", "")
            assert "\0" not in stored
            stored.encode()


@every_reader
def test_deep_nesting_is_bad_and_not_fatal(reader: Reader, path: Path) -> None:
    if reader.__name__ in TEXTS:
        pytest.skip("markdown does not nest")
    nested = SAMPLES[reader].replace(b'"pytest"', b"[" * 2000 + b"]" * 2000).replace(b'"ls"', b"[" * 2000 + b"]" * 2000)
    nested = nested.replace(b'"staging"', b"[" * 2000)
    accounted(read(reader, nested, path), len(nested))


@every_reader
@pytest.mark.parametrize(
    "value", [b"-" + b"9" * 5_000, b"[" * 3_000 + b"]" * 3_000, b'{"a":' * 2_000 + b"1" + b"}" * 2_000]
)
def test_a_value_beyond_limits_is_left_out_and_the_rest_of_the_session_kept(
    reader: Reader, value: bytes, path: Path
) -> None:
    if reader.__name__ in TEXTS:
        pytest.skip("markdown holds no values")
    sample = SAMPLES[reader]
    whole = events_of(read(reader, sample, path))
    at = sample.rindex(b"}")
    parsed = read(reader, sample[:at] + b', "x": [' + value + b', "}]"]' + sample[at:], path)
    assert [event.dedupe_key for event in events_of(parsed)] == [event.dedupe_key for event in whole]
    accounted(parsed, parsed[-1].end)
    (why,) = (line.why for line in parsed if line.why)
    assert why.startswith("left out at byte ")


@every_reader
def test_a_document_behind_zero_bytes_is_read_and_the_loss_said(reader: Reader, path: Path) -> None:
    parsed = read(reader, b"\0" * 5_000 + SAMPLES[reader], path)
    assert sniff(path) is reader
    accounted(parsed, len(SAMPLES[reader]) + 5_000)
    assert events_of(parsed) == events_of(read(reader, SAMPLES[reader], path))
    assert parsed[0].why == "begins with 5,000 zero bytes, where the disk lost what was written"


ODD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.just([]), st.just({}),
    st.just([[]]), st.just({"type": {}}), st.just(2**70), st.just("user"), st.just(["x", None, {"text": 3}]),
)  # fmt: skip


def nodes(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(node for name, each in inner for node in nodes(each, (*at, name)))]


def put(value: Any, at: tuple[Any, ...], odd: Any) -> Any:
    if not at:
        return odd
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[at[0]] = put(copy[at[0]], at[1:], odd)
    return copy


@every_reader
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_no_confusion_of_types_breaks_a_reader(reader: Reader, path: Path, data: st.DataObject) -> None:
    sample = SAMPLES[reader]
    if reader.__name__ in TEXTS:
        texts = sample.decode().split("\n")
        for _ in range(3):
            texts[data.draw(st.integers(0, len(texts) - 1))] = data.draw(st.sampled_from(texts) | st.text(max_size=30))
        changed = "\n".join(texts).encode("utf-8", "surrogatepass")
    else:
        records = [json.loads(sample)] if reader in DOCUMENTS else [json.loads(line) for line in sample.splitlines()]
        for _ in range(2):
            at = data.draw(st.sampled_from(nodes(records)[1:]))
            records = put(records, at, data.draw(ODD))
        changed = b"\n".join(json.dumps(record).encode() for record in records) + b"\n"
    accounted(read(reader, changed, path), len(changed))


@every_reader
@settings(deadline=None, max_examples=25)
@given(noise=st.binary(max_size=40), where=st.floats(0, 1), cut=st.integers(0, 60))
def test_no_damage_breaks_a_reader(reader: Reader, path: Path, noise: bytes, where: float, cut: int) -> None:
    sample = SAMPLES[reader]
    at = int(len(sample) * where)
    damaged = sample[:at] + noise + sample[at + cut :]
    accounted(read(reader, damaged, path), len(damaged))


def test_a_mixed_folder_sorts_itself_out(tmp_path: Path) -> None:
    suffixes = {"SpecStory": ".md", "Aider": ".md", "SweAgent": ".traj", "OpenCode": ".json", "GeminiDocument": ".json"}
    for reader, sample in SAMPLES.items():
        (tmp_path / f"{reader.__name__}{suffixes.get(reader.__name__, '.jsonl')}").write_bytes(sample)
    (tmp_path / "README.md").write_text("# A project\n\n> quoted\n")
    (tmp_path / "package.json").write_text('{"name": "x", "history": []}')
    (tmp_path / "messages.json").write_text('[{"role": "user", "content": "x"}]')
    assert {path.stem for path in discover([tmp_path])} == {reader.__name__ for reader in READERS}
    assert [path.stem for path in discover([tmp_path], agent="aider")] == ["Aider"]
    assert all(isinstance(reader(), Document) == (reader in DOCUMENTS) for reader in READERS)
