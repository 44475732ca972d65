"""Events by the million, drawn from real sessions: the mix of types, sizes and lengths of sessions is theirs.

A generated session is a real one, told anew: under a session id of its own, at another time, in another project, and
with its own names. Every run of letters and digits that at most two real sessions hold (identifiers, files, ids of
lines and calls, versions, ports) is put through a substitution cipher of that clone, letter for letter and digit for
digit, so lengths, kinds of characters, hexadecimal, and references inside the session stay as they were. The working
directory gets the number of one of the history's projects, wherever it stands. Words that more sessions share
(`error`, `pytest`, `the`, a repository's best-known files) stay, or no rule would know a failed test when it sees one.

Same folder and seed: same events, and a shorter history is the beginning of a longer one.
"""

from __future__ import annotations

import random
import re
import string
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from memctl.domain.events.event import Micros, NewEvent, decode_payload, event_types, type_of
from memctl.domain.events.observations import Hunk, Observation, session_stream, transcript_key
from memctl.infra.log.append import encode_payload
from memctl.infra.redaction import prepare_all
from memctl.infra.transcripts.files import discover

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import published  # noqa: E402
from transcript_files import format_of, parse_file  # noqa: E402

EXAMPLE = ROOT / "infra" / "example"

SHARED_BY = 2
"""A word that more real sessions than this hold is common, and stays."""

SESSIONS_PER_PROJECT = 15
START = 1_735_689_600_000_000
"""2025-01-01T00:00:00Z, in microseconds: when the first generated session begins."""

BETWEEN_S = 600.0
"""Seconds from the beginning of one session to that of the next."""

# Escapes of JSON are taken whole, or the n of `\\n` would begin the next word.
_WORDS = r"\\(?:u[0-9a-fA-F]{4}|.)|([A-Za-z0-9]{4,})"
_WORD = re.compile(_WORDS)
_TOKEN = re.compile(rf"{_WORDS}|\x01(\d+)\x02")
"""A word, or the place of a working directory: JSON holds no such characters."""
_HEX = re.compile(r"(?=.*\d)[0-9a-f]+")
_KEPT = frozenset({"transcript", "hook", "text", "thinking"})
"""Values that payloads allow by name; words in the names of their fields are kept too."""


@dataclass(frozen=True)
class Cut:
    """One real session, cut where its words may be replaced. `raw_bytes` is the size of its transcript."""

    agent: str
    raw_bytes: int
    events: tuple[NewEvent, ...]
    roots: re.Pattern[str]
    """Working directories, without those that lie in another."""
    literals: list[str]
    tokens: list[str]
    """What stands between two literals: indices into it are `order`."""
    order: list[int]
    groups: list[int]
    """Of each token: 0 a word, 1 hexadecimal, 2 a working directory."""


@dataclass(frozen=True)
class Generated:
    """One generated session, and how large a transcript it stands for."""

    events: list[NewEvent]
    raw_bytes: int


def generate(
    sessions: Sequence[Cut], count: int, seed: int = 1, *, part: int = 0, parts: int = 1
) -> Iterator[Generated]:
    """Whole sessions until there are `count` events; the last one is cut short. `part` of `parts` takes its share."""
    clone, left = 0, count
    while left > 0:
        luck = random.Random(f"{seed}:{clone}")
        cut = luck.choice(sessions)
        if clone % parts == part:
            made = _told_anew(cut, luck, clone)
            if len(made.events) > left:
                made = Generated(made.events[:left], made.raw_bytes * left // len(made.events))
            yield made
        left -= len(cut.events)
        clone += 1


def read_sessions(folder: Path | None = None) -> list[Cut]:
    """The sessions of a folder of transcripts; else the published ones; else the packaged example."""
    if folder is None and published.SESSIONS.exists():
        with published.sessions() as unpacked:
            return read_sessions(unpacked)
    found: list[tuple[int, list[NewEvent]]] = []
    for path in discover([folder or EXAMPLE]):
        if (form := format_of(path)) is not None:
            events = [event for line in parse_file(path, form) for event in line.events]
            if events:
                found.append((path.stat().st_size, prepare_all(events).events))
    held: Counter[str] = Counter()
    for _, events in found:
        held.update({token for e in events for token in _WORD.findall(encode_payload(e).decode()) if token})
    structs = [Hunk, *(entry.payload for entry in event_types().values())]
    fields = {word for struct in structs for f in msgspec.structs.fields(struct) for word in f.name.split("_")}
    common = {token for token, times in held.items() if times > SHARED_BY} if len(found) > SHARED_BY else set()
    return [_cut(size, events, common | fields | _KEPT) for size, events in found]


def _cut(raw_bytes: int, events: list[NewEvent], kept: set[str] | frozenset[str]) -> Cut:
    text = "\n".join(encode_payload(e).decode() for e in events)
    places = {e.location for e in events if e.location.count("/") > 1}
    outer = sorted(p for p in places if not any(p != other and p.startswith(f"{other}/") for other in places))
    roots = re.compile(rf"({'|'.join(map(re.escape, outer)) or '(?!)'})(?![\w-])")
    text = roots.sub(lambda match: f"\x01{outer.index(match.group(1))}\x02", text)
    literals: list[str] = []
    order: list[int] = []
    known: dict[str, int] = {}
    at = 0
    for match in _TOKEN.finditer(text):
        token = outer[int(match.group(2))] if match.group(2) else match.group(1)
        if not token or token in kept:
            continue
        literals.append(text[at : match.start()])
        order.append(known.setdefault(token, len(known)))
        at = match.end()
    literals.append(text[at:])
    groups = [2 if token in places else 1 if _HEX.fullmatch(token) else 0 for token in known]
    agent = events[0].stream.split("/")[1]
    return Cut(agent, raw_bytes, tuple(events), roots, literals, list(known), order, groups)


def _told_anew(cut: Cut, luck: random.Random, clone: int) -> Generated:
    project = f"-{luck.randrange(1 + clone // SESSIONS_PER_PROJECT)}"
    ciphers = (_cipher(luck), _cipher(luck, hexadecimal=True))
    new = [
        token + project if group == 2 else token.translate(ciphers[group])
        for token, group in zip(cut.tokens, cut.groups, strict=True)
    ]
    parts = [""] * (2 * len(cut.order) + 1)
    parts[0::2] = cut.literals
    parts[1::2] = [new[index] for index in cut.order]

    session = f"{luck.getrandbits(128):032x}"
    stream = session_stream(cut.agent, session)
    begins = START + int((clone + luck.random()) * BETWEEN_S * 1e6)
    shift = begins - min((e.occurred_at for e in cut.events if e.occurred_at), default=0)
    locations = {e.location: cut.roots.sub(rf"\1{project}", e.location) for e in cut.events}
    events: list[NewEvent] = []
    for e, data in zip(cut.events, "".join(parts).split("\n"), strict=True):
        kind = type_of(e.payload)
        payload = decode_payload(kind.name, kind.version, data.encode())
        assert isinstance(payload, Observation)
        events.append(
            NewEvent(
                stream=stream,
                payload=payload,
                occurred_at=Micros(e.occurred_at + shift if e.occurred_at else 0),  # what has no time keeps none
                dedupe_key=transcript_key(cut.agent, session, payload.line, payload.block),
                actor=e.actor,
                location=locations[e.location],
                session_id=session,
            )
        )
    return Generated(events, cut.raw_bytes)


def _cipher(luck: random.Random, *, hexadecimal: bool = False) -> dict[int, int]:
    """Letters for letters, digits for digits; 0 stays, so numbers keep their length."""
    alphabets = [string.digits[1:]]
    alphabets += ["abcdef"] if hexadecimal else [string.ascii_lowercase, string.ascii_uppercase]
    return {
        old: new
        for alphabet in alphabets
        for old, new in str.maketrans(alphabet, "".join(luck.sample(alphabet, len(alphabet)))).items()
    }
