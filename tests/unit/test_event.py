"""Events: the register, upcasting, ids and shards."""

from __future__ import annotations

import uuid
from typing import Literal, cast, get_args, get_origin

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.events import event as events
from memctl.domain.events.event import (
    NAMESPACE,
    FutureSchemaVersion,
    Payload,
    UnknownEventType,
    decode_payload,
    derived_id,
    derived_of,
    derived_text,
    event_types,
    stream_hash,
    type_of,
    upcast,
)
from memctl.domain.events.observations import PromptSubmitted, capped
from memctl.infra.log.append import encode_payload


@pytest.fixture
def note() -> type[Payload]:
    """An event type that is in its third version."""
    taken = dict(events._by_name), dict(events._by_class), dict(events._decoders)

    @events.event("note.taken", version=3)
    class NoteTaken(Payload, frozen=True, kw_only=True):
        """A note."""

        words: tuple[str, ...]
        loud: bool = False

    @upcast("note.taken", to=2)
    def _(payload: dict[str, object]) -> dict[str, object]:
        return {"text": payload["body"]}

    @upcast("note.taken", to=3)
    def _(payload: dict[str, object]) -> dict[str, object]:
        return {"words": str(payload["text"]).split()}

    yield NoteTaken  # type: ignore[misc]
    for register, before in zip((events._by_name, events._by_class, events._decoders), taken, strict=True):
        register.clear()  # type: ignore[attr-defined]
        register.update(before)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("version", "stored"),
    [(1, b'{"body": "keep it"}'), (2, b'{"text": "keep it"}'), (3, b'{"words": ["keep", "it"]}')],
)
def test_a_payload_of_any_version_is_lifted_to_that_of_today(note: type, version: int, stored: bytes) -> None:
    assert decode_payload("note.taken", version, stored) == note(words=("keep", "it"))


def test_a_payload_from_a_newer_memctl_is_refused_and_not_guessed_at(note: type) -> None:
    with pytest.raises(FutureSchemaVersion, match="reads up to 3"):
        decode_payload("note.taken", 4, b'{"words": []}')


def test_an_unknown_event_type_stops_the_reader() -> None:
    with pytest.raises(UnknownEventType, match=r"note\.lost"):
        decode_payload("note.lost", 1, b"{}")


def test_a_name_cannot_be_registered_twice(note: type) -> None:
    with pytest.raises(ValueError, match="twice"):
        events.event("note.taken")(note)


def test_fields_that_are_not_known_are_ignored_and_missing_ones_take_their_defaults() -> None:
    assert decode_payload("prompt.submitted", 1, b'{"text": "hi", "mood": 3}') == PromptSubmitted(text="hi")


def sample(kind: object) -> object:
    """A value of a field's type, as JSON has it."""
    if get_origin(kind) is Literal:
        return get_args(kind)[0]
    if get_origin(kind) is tuple:
        return []
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        given = {f.name: sample(f.type) for f in msgspec.structs.fields(kind) if f.required}
        return list(given.values()) if kind.__struct_config__.array_like else given
    return {uuid.UUID: str(NAMESPACE), bool: True, int: 1, float: 0.5}.get(cast(type, kind), "x")


def test_every_registered_type_says_what_it_is_and_survives_a_round_trip() -> None:
    for name, entry in event_types().items():
        assert entry.doc, name
        assert name == name.lower()
        assert "." in name
        required = {f.name: sample(f.type) for f in msgspec.structs.fields(entry.payload) if f.required}
        payload = msgspec.convert(required, entry.payload)
        assert type_of(payload).name == name
        assert decode_payload(name, entry.version, msgspec.json.encode(payload)) == payload


@given(st.text())
def test_derived_ids_are_uuid5(name: str) -> None:
    name = name.encode("utf-8", "replace").decode()
    assert derived_id(name) == uuid.uuid5(NAMESPACE, name)
    assert derived_text(name) == str(derived_id(name))


_PARTS = st.lists(st.text("ab\n", max_size=4), min_size=3, max_size=3)


@given(_PARTS, _PARTS)
def test_what_has_other_parts_has_another_id(one: list[str], other: list[str]) -> None:
    assert (derived_of("x", *one) == derived_of("x", *other)) is (one == other)


def test_an_id_by_parts_is_that_of_their_lines() -> None:
    written = str(derived_id("x:a\nb\nc"))
    assert derived_of("x", "a", "b\nc") == written, "statements in logs of before name things by it"


def test_shards_do_not_depend_on_the_process() -> None:
    assert [stream_hash(f"session/codex/{n}") for n in range(5)] == [100, 181, 124, 112, 240]


@given(st.text(max_size=400), st.integers(10, 300))
def test_a_capped_text_keeps_its_head_its_tail_and_its_true_length(text: str, limit: int) -> None:
    kept, length = capped(text, limit)
    if len(text) <= limit:
        assert (kept, length) == (text, 0)
    else:
        head = limit * 10 // 16
        assert length == len(text)
        assert kept.startswith(text[:head])
        assert kept.endswith(text[head + len(text) - limit :])
        assert f"{len(text) - limit} characters left out" in kept


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("a\0b", "a\ufffdb"),
        (r"does json refuse \u0000 in strings?", r"does json refuse \u0000 in strings?"),
        ("\\\0", "\\\ufffd"),
        (r"\\u0000", r"\\u0000"),
    ],
)
def test_only_a_real_nul_is_replaced_on_the_way_into_the_log(text: str, stored: str) -> None:
    event = events.NewEvent(
        stream="session/codex/1",
        payload=PromptSubmitted(text=text),
        occurred_at=events.Micros(0),
        dedupe_key="k",
        actor="user",
    )
    assert msgspec.json.decode(encode_payload(event))["text"] == stored
