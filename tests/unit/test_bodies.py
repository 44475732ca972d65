"""What a request's body may say: what the API's description rules out is refused, and nothing else for its form."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from client_sessions import CLAUDE
from events import observed
from pydantic import BaseModel, ValidationError

from memctl.api.http.long_texts import Asked, ErrorText, SearchText
from memctl.api.write.remote_ingest import BadDelivery, NoSuchEvent, received, sent
from memctl.domain.events.command import MalformedCommand, commands, read_command
from memctl.domain.events.event import Micros
from memctl.domain.events.observations import PromptSubmitted
from memctl.domain.support.json_bodies import MOST_VALUES, has_few_values
from memctl.infra.hooks.payloads import parse_hook
from memctl.infra.transcripts.claude import Claude
from memctl.infra.transcripts.formats import MANY_VALUES, decoded_within
from memctl.infra.transcripts.reading import _records


@pytest.mark.parametrize(
    ("model", "field", "wrong"),
    [
        (SearchText, "explain", 0),
        (SearchText, "explain", "no"),
        (SearchText, "limit", "3"),
        (ErrorText, "limit", True),
        (Asked, "limit", "3"),
    ],
)
def test_what_only_reads_as_a_number_or_as_true_is_refused(model: type[BaseModel], field: str, wrong: object) -> None:
    right = {"q": "x", "text": "x", "kind": "how_to"}
    fitting = {name: value for name, value in right.items() if name in model.model_fields}
    model.model_validate(fitting)
    with pytest.raises(ValidationError) as refused:
        model.model_validate({**fitting, field: wrong})
    assert [each["loc"] for each in refused.value.errors()] == [(field,)]


def test_a_whole_number_may_be_written_with_a_point() -> None:
    assert SearchText.model_validate({"q": "x", "limit": 3.0}).limit == 3


@pytest.mark.parametrize("number", ["5.0", "5e0", "50e-1"])
def test_a_whole_number_is_one_however_it_is_written(number: str) -> None:
    command = commands()["core-append"]
    told = read_command(command, b'{"section": "human", "content": "x", "version": %s}' % number.encode())
    assert told == read_command(command, b'{"section": "human", "content": "x", "version": 5}')
    assert received(delivered(occurred_at=5.0, payload={"text": "x", "line": "1"}))[0].occurred_at == 5


def test_what_stands_in_a_payload_stays_as_it_was_written() -> None:
    called = {"line": "1", "tool": "t", "input": {"seconds": 2.0}}
    (event,) = received(delivered(type="tool.called", payload=called, occurred_at=5.0))
    assert repr(event.payload.input) == "{'seconds': 2.0}"  # type: ignore[union-attr]


def test_a_name_with_nul_is_badly_asked() -> None:
    called = {"line": "1", "tool": "t", "input": {}}
    with pytest.raises(BadDelivery, match="NUL"):
        received(delivered(type="tool.called", payload=called, location="/w/a\0b"))


def test_half_a_character_in_a_payload_is_badly_asked() -> None:
    with pytest.raises(BadDelivery):
        received(delivered(payload={"text": "HALF", "line": "1"}).replace(b"HALF", b"\xed\xa0\x80"))


@pytest.mark.parametrize("body", ['{"events": [{"payload": ', '{"events": [], "x": ', '{"by": "user", "x": '])
def test_what_is_nested_too_deeply_is_badly_asked(body: str) -> None:
    deep = (body + "[" * 200_000).encode()
    with pytest.raises(BadDelivery):
        received(deep)
    with pytest.raises(MalformedCommand):
        read_command(commands()["note"], deep)


def delivered(**other: Any) -> bytes:
    whole = observed(PromptSubmitted(line="l1", text="draw the rivers first"), session="s")
    return json.dumps({"events": [{**json.loads(msgspec.json.encode(sent(whole))), **other}]}).encode()


@pytest.mark.parametrize(
    "other",
    [
        {"stream": ""},
        {"stream": "session/x/"},
        {"stream": "core/1"},
        {"dedupe_key": ""},
        {"occurred_at": 1 << 62},
        {"version": 0},
    ],
)
def test_an_event_that_the_description_rules_out_is_badly_asked(other: dict[str, Any]) -> None:
    assert received(delivered())
    with pytest.raises(BadDelivery):
        received(delivered(**other))


@pytest.mark.parametrize("other", [{"stream": "project/x"}, {"payload": {"line": 1}}])
def test_what_is_well_formed_and_no_event_is_told_so(other: dict[str, Any]) -> None:
    with pytest.raises(NoSuchEvent):
        received(delivered(**other))


@pytest.mark.parametrize(
    ("text", "few"),
    [
        (b"[" + b"0," * (MOST_VALUES - 2) + b"0]", True),
        (b"[" + b"0," * MOST_VALUES + b"0]", False),
        (b"[" * (MOST_VALUES + 1), False),
        (b"[" + b'"a",' * MOST_VALUES + b'"a"]', False),
        (b'{"code": "' + b"f(a, [b], {})," * 200_000 + b'", "path": "a\\\\"}', True),
        (b'{"code": "' + b'\\"a\\",' * MOST_VALUES + b'"}', True),
        (b'{"code": "x\\\\", "more": [' + b"{}," * MOST_VALUES + b"0]}", False),
    ],
)
def test_json_of_very_many_values_is_known_before_it_is_read(text: bytes, few: bool) -> None:
    assert has_few_values(text) == few


def test_what_holds_very_many_values_is_refused_wherever_it_stands() -> None:
    many = "[" + "[]," * MOST_VALUES + "0]"
    assert parse_hook(b'{"session_id": "s", "x": ' + many.encode() + b"}", "d", Micros(1)).why == MANY_VALUES
    line = json.dumps({**CLAUDE[0], "x": 1}).encode()[:-1] + b', "y": ' + many.encode() + b"}\n"
    assert _records(line, Claude()) == ([], MANY_VALUES)
    with pytest.raises(ValueError, match="more than"):
        decoded_within(many)
