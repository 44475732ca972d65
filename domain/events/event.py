"""Events: typed payloads under wire names that never change, and the envelope they travel in.

A payload class is registered by `@event("noun.verb", version=N)`. When its shape changes, raise `version` and
register one `@upcast` step from the version before; stored payloads are lifted step by step when they are read.
"""

import functools
import hashlib
import importlib
import pkgutil
from collections.abc import Callable
from typing import Any, NewType, TypeVar, cast
from uuid import UUID

import msgspec

from memctl.domain.support.errors import MemctlError

Position = NewType("Position", int)
"""Place of an event in the log: grows with every append, has gaps where a transaction rolled back."""

Micros = NewType("Micros", int)
"""A moment: microseconds since 1970-01-01T00:00:00Z."""

YEAR_9999 = Micros(253_370_764_800_000_000)
"""Its beginning. No event is later: calendars end a year behind."""

_AHEAD = 86_400_000_000
"""How far a clock may be ahead of memctl's, or one that does not name its zone."""


def credible(claimed: int, heard: int) -> Micros:
    """A claimed moment; 0, as for what bears none, where it lies before 1970 or a day after it was heard of."""
    return Micros(claimed if 0 <= claimed <= heard + _AHEAD else 0)


NAMESPACE = UUID("6d656d63-746c-5e76-8e74-6c6f67000001")
"""Namespace of every UUIDv5 that memctl derives."""

# RFC 4122, 4.1: bits 76 to 79 give the version, bits 62 and 63 the variant.
_NAMESPACE = NAMESPACE.bytes
_FREE = ~(0xF << 76 | 0b11 << 62)
_VERSION_5 = 5 << 76 | 0b10 << 62


def _derived(name: str) -> int:
    digest = hashlib.sha1(_NAMESPACE + name.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()
    return int.from_bytes(digest[:16], "big") & _FREE | _VERSION_5


def derived_bytes(name: str) -> bytes:
    """The 16 bytes of `derived_id(name)`."""
    return _derived(name).to_bytes(16, "big")


def derived_id(name: str) -> UUID:
    """UUIDv5 of `name` in memctl's namespace (as `uuid.uuid5`, at a third of its cost)."""
    return UUID(int=_derived(name))


_VARIANT = {f"{digit:x}": "89ab"[digit & 0b11] for digit in range(16)}


def derived_text(name: str) -> str:
    """`derived_id(name)` as it is written, at half the cost."""
    name_bytes = name.encode("utf-8", "surrogatepass")
    found = hashlib.sha1(_NAMESPACE + name_bytes, usedforsecurity=False).hexdigest()
    return f"{found[:8]}-{found[8:12]}-5{found[13:16]}-{_VARIANT[found[16]]}{found[17:20]}-{found[20:32]}"


def derived_of(kind: str, *parts: str) -> str:
    """UUIDv5, as it is written, of the thing of a kind that these parts name, each on a line: no others name it.

    A break within any but the last is written as NUL, which no text that Postgres keeps holds: a client's id of a
    session, or a folder, may have one.
    """
    lines = [part.replace("\n", "\0") for part in parts[:-1]]
    return derived_text(f"{kind}:" + "\n".join([*lines, parts[-1]]))


def stream_hash(stream: str) -> int:
    """First byte of sha256 of the stream's name (0 to 255): which shard of stage 1 a stream belongs to."""
    return hashlib.sha256(stream.encode("utf-8", "surrogatepass")).digest()[0]


class Payload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of event payloads. Unknown fields of newer writers are ignored by `msgspec`; missing ones take defaults."""


class EventType(msgspec.Struct, frozen=True):
    """One entry of the register: a wire name, the version written today, its payload class, and its upcasts."""

    name: str
    version: int
    payload: type[Payload]
    upcasts: dict[int, Callable[[dict[str, Any]], dict[str, Any]]]
    doc: str


class UnknownEventType(MemctlError):
    """The log holds an event type that this version of memctl does not know."""


class FutureSchemaVersion(MemctlError):
    """The log holds an event written by a newer version of memctl."""


_by_name: dict[str, EventType] = {}
_by_class: dict[type[Payload], EventType] = {}
_decoders: dict[str, msgspec.json.Decoder[Any]] = {}

P = TypeVar("P", bound=Payload)
Upcast = Callable[[dict[str, Any]], dict[str, Any]]


def event(name: str, version: int = 1) -> Callable[[type[P]], type[P]]:
    """Register a payload class under its wire name."""

    def register(cls: type[P]) -> type[P]:
        if name in _by_name:
            raise ValueError(f"event type {name!r} is registered twice")
        entry = EventType(name, version, cls, {}, (cls.__doc__ or "").strip())
        _by_name[name] = entry
        _by_class[cls] = entry
        _decoders[name] = msgspec.json.Decoder(cls)
        return cls

    return register


def upcast(name: str, *, to: int) -> Callable[[Upcast], Upcast]:
    """Register the step that lifts a stored payload of `name` from version `to - 1` to version `to`."""

    def register(step: Upcast) -> Upcast:
        _by_name[name].upcasts[to] = step
        return step

    return register


def event_types() -> dict[str, EventType]:
    """The register by wire name, with every module of `memctl.domain` loaded."""
    _load_all()
    return dict(sorted(_by_name.items()))


@functools.cache
def _load_all() -> None:
    import memctl.domain

    for module in pkgutil.walk_packages(memctl.domain.__path__, "memctl.domain."):
        importlib.import_module(module.name)


def type_of(payload: Payload) -> EventType:
    """The register's entry for a payload.

    Raises: KeyError when its class was never registered.
    """
    return _by_class[type(payload)]


def decode_payload(name: str, version: int, data: bytes) -> Payload:
    """Read a stored payload, lifting it from the version it was written in.

    Raises: UnknownEventType, FutureSchemaVersion, msgspec.ValidationError.
    """
    entry = _by_name.get(name)
    if entry is None:
        entry = event_types().get(name)
        if entry is None:
            raise UnknownEventType(
                f"event type {name!r} is not known to this version of memctl", hint="upgrade memctl, then try again"
            )
    if version == entry.version:
        try:
            return cast(Payload, _decoders[name].decode(data))
        except RecursionError:
            raise msgspec.ValidationError("nested too deeply") from None
    if version > entry.version:
        raise FutureSchemaVersion(
            f"event type {name!r} is stored in version {version}; this memctl reads up to {entry.version}",
            hint="upgrade memctl, then try again",
        )
    raw: dict[str, Any] = msgspec.json.decode(data)
    for step in range(version + 1, entry.version + 1):
        raw = entry.upcasts[step](raw)
    return msgspec.convert(raw, entry.payload)


class NewEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event on its way into the log.

    `dedupe_key` names the delivery and holds no content: a second append under the same key is a duplicate.
    `location` is the normalised working directory; `actor` is who spoke: user, agent, tool, system or memctl, or
    who and through whose key (`member:dana`, `agent:dana`). Of the
    variants among its `sources`, `deliveries` are the ones that another log calls them by, and are not kept: what was
    forgotten of these keeps it out, too, for a variant that was forgotten has its id no more. `brought` is not kept
    either: it was read from a file that lay elsewhere than clients keep theirs.
    """

    stream: str
    payload: Payload
    occurred_at: Micros
    dedupe_key: str
    actor: str
    location: str = ""
    session_id: str = ""
    causation_id: UUID | None = None
    correlation_id: UUID | None = None
    sources: tuple[UUID, ...] = ()
    deliveries: tuple[UUID, ...] = ()
    brought: bool = False

    @property
    def type(self) -> str:
        return type_of(self.payload).name


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """An event as the log holds it, its payload lifted to the version of today.

    `event_id` is the UUIDv5 of space and dedupe key. Where one key was delivered with different payloads, each
    further one is stored as a variant, and `variant_of` is the id of the first: `delivery_id` is equal for all.
    """

    position: Position
    event_id: UUID
    space_id: int
    stream: str
    type: str
    occurred_at: Micros
    recorded_at: Micros
    actor: str
    location: str
    session_id: str
    dedupe_key: str
    payload: Payload
    variant_of: UUID | None = None
    sources: tuple[UUID, ...] = ()

    @property
    def delivery_id(self) -> UUID:
        return self.variant_of or self.event_id
