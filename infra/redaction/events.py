"""What every event passes on its way into the log: cleaned, redacted, marked, and only then capped.

A secret that capping would cut in half must not survive, hence the order. What memctl itself injected is not kept
again: `memory.recalled` records it by ids, and a copy of its words would outlive what is forgotten.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain, takewhile
from typing import Any

import msgspec

from memctl.domain.events.event import NewEvent, credible
from memctl.domain.events.observations import (
    CONTEXT_BLOCK_CLOSE,
    CONTEXT_BLOCK_OPEN,
    HEAD,
    LONGEST_FILE,
    LONGEST_NAME,
    MOST_FILES,
    TEXT_CAP,
    CommitRecorded,
    Hunk,
    NoticeReceived,
    Observation,
    ToolCalled,
    ToolOutcome,
    bounded_name,
    capped,
    with_note,
)
from memctl.domain.projects.identity import PATHS, ProjectIdentified
from memctl.domain.support import patterns
from memctl.domain.support.location import LONGEST, bounded, nowhere
from memctl.infra.redaction.text import Redactor, clean, default_redactor, drop_private

OBJECT_CAP = 2 * TEXT_CAP
"""Characters of all strings of one nested object that are kept."""

MARGIN = 200_000
"""Characters around each end of a long text that is kept, in which secrets are looked for as well: more than a block of
keys, a certificate or a manifest has. A secret that is found takes 50 us."""

LONGEST_SCANNED = TEXT_CAP + 2 * MARGIN
"""Characters of one text that are searched for secrets."""

MOST_SCANNED = 4 * TEXT_CAP
"""Characters of all strings of a list or an object that are, each counted as far as it is kept."""

MOST_HUNKS = 100
"""Of a patch; of more it is asked how long they are."""

_NOTE = 64
"""Characters, and some more, of the note that says what was left out."""

_LONGEST_REMEMBERED = 1_000
"""Characters of the names of a place and a session that are looked at once for all their events."""

_MAX_DEPTH = 32
_OTHER_CAP = 4096
"""Characters of a file name, a title, a branch, and whatever else is no text."""

_SHORT_NAME = LONGEST_NAME // 4
"""Characters of a name that is never too long."""

_NAMES = frozenset(("line", "parent", "call", "asked", "subagent"))
"""Fields of observations that hold a name which a client drew. Two that differ have to stay two."""

_KEY_FILES = (".key",)
"""Ends of names of files in which a key may stand alone."""

_SHORT_PATH = LONGEST // 6
"""Characters of a location that is never too long."""

_NAMING = {"value": ("name", "key"), "Value": ("Name", "Key"), "VALUE": ("NAME", "KEY")}
"""The key that says what a value beside it is called, as in `{"name": …, "value": …}` or `headerValue`."""

_LONGEST_NAMING = 200
"""Characters of such a name, and of an option in a list of arguments."""

_OF_NAMES = str.maketrans("", "", "-_.")
"""Signs that such names have."""

_SMALLEST, _LARGEST = -(2**63), 2**63 - 1

_MOST_COUNTED, _MOST_STATED = 2**40, 2**53
"""Of a number that a field is for: of tokens, milliseconds or characters, of which rows hold sums, and of any other."""

# Clients put the server's name before a tool's in ways of their own; Claude Code that of a plugin too.
_OWN_TOOL = patterns.compile(r"(?:mcp_{1,2})?(?:plugin_memctl_)?memctl(?:_{1,2}|[.:/])\w")

# As `api.assist.recall` writes it, with its end cut off or not: a heading, and lines that begin with a date, perhaps in
# JSON. Any other tag that nothing closes is a person's who names it, and what follows are that person's words.
_LINE_END = r"(?:\r?\n|\\n)"
_OURS = rf"{_LINE_END}[^\n]{{1,400}}?:{_LINE_END}- \d{{4}}-\d\d-\d\d"
_HEADING = patterns.compile(_OURS)
_CUT = f"{CONTEXT_BLOCK_OPEN}…{CONTEXT_BLOCK_CLOSE}"
"""What stands where memctl's own words stood."""


class Prepared(msgspec.Struct, frozen=True):
    """Events as they may be stored, and how many of each kind were cut out of them."""

    events: list[NewEvent]
    redactions: dict[str, int]


def prepare(event: NewEvent) -> NewEvent:
    """One event as it may be stored: every string of it clean, without secrets, private blocks and memctl's own words,
    and capped; and marked `injected` where it held such words. An event that needs none of it is given back itself.
    """
    return _prepared(event, default_redactor(), Counter(), time.time_ns() // 1000)


def prepare_all(events: Iterable[NewEvent], redactor: Redactor | None = None) -> Prepared:
    """`prepare` for many, with a count of what was cut out."""
    counts: Counter[str] = Counter()
    redactor, now = redactor or default_redactor(), time.time_ns() // 1000
    return Prepared([_prepared(event, redactor, counts, now) for event in events], dict(counts))


def as_sent(payload: dict[str, Any], redactor: Redactor) -> dict[str, Any]:
    """What a hook asks (the client's JSON object), as it may leave this machine; itself where it may as it is."""
    strings: list[str] = []
    if not (_collect(payload, strings) or _suspect(redactor, "\n".join(strings))):
        return payload
    rewrite = _Rewrite(redactor, Counter(), 0)
    asked: dict[str, Any] = rewrite.value(payload)
    for name in _ASKED_BY:
        if isinstance(given := payload.get(name), str):
            asked[name] = _digest(given) if redactor.names_a_secret(given) else clean(given)
    if isinstance(place := payload.get("cwd"), str):
        asked["cwd"] = _placed(place, asked["cwd"])
    if isinstance(roots := payload.get("workspace_roots"), list) and all(isinstance(each, str) for each in roots):
        asked["workspace_roots"] = list(map(_placed, roots, asked["workspace_roots"]))
    return asked


_ASKED_BY = ("session_id", "conversation_id")
"""Fields of a hook's payload that name its session, as the events of it do."""


def _prepared(event: NewEvent, redactor: Redactor, counts: Counter[str], now: int) -> NewEvent:
    at = credible(event.occurred_at, now)
    if at != event.occurred_at:
        event = msgspec.structs.replace(event, occurred_at=at)
    payload, location = event.payload, event.location
    strings, around = [event.dedupe_key], (location, event.stream, event.session_id, event.actor)
    odd = _collect(payload, strings) or _of_key(payload) != ""
    joined = "\n".join(strings)
    injected, length = False, 0
    if odd or _suspect(redactor, joined) or _suspect_around(redactor, *around):
        rewrite = _Rewrite(redactor, counts, sum(map(len, around)) + len(around) + len(joined))
        payload, location = rewrite.value(payload), _placed(location, rewrite.text(location))
        injected, length = rewrite.injected, rewrite.length
        event = _renamed(event, redactor, counts)
    if isinstance(payload, Observation):
        event = _short_named(event)
        long = odd or len(joined) > _OTHER_CAP or _has_many(payload)
        payload = _within_limits(payload, long, length, injected=injected)
    elif isinstance(payload, ProjectIdentified) and (payload is not event.payload or len(joined) > _SHORT_PATH):
        of_paths = {name: bounded(_placed(getattr(event.payload, name), getattr(payload, name))) for name in PATHS}
        placed = msgspec.structs.replace(payload, **of_paths)
        payload = payload if placed == payload else placed
    if len(location) > _SHORT_PATH:
        location = bounded(location)
    if payload is event.payload and location == event.location:
        return event
    return msgspec.structs.replace(event, payload=payload, location=location)


def _of_key(payload: Any) -> str:
    """The file whose name says that the text read from it is a key; "" where there is none."""
    file: str = getattr(payload, "file", "")
    return file if file.endswith(_KEY_FILES) else ""


def _placed(path: str, cleaned: str) -> str:
    """Where something lies whose path is not kept as it is: two directories stay two."""
    return path if cleaned == path else nowhere(path)


def _suspect(redactor: Redactor, text: str) -> bool:
    """Whether a text may hold something that is not kept as it stands."""
    try:
        data = text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return True
    return b"\0" in data or redactor.suspects(data)


def _suspect_around(redactor: Redactor, *names: str) -> bool:
    """The same of what many events share: where they happened, in which session."""
    short = sum(map(len, names)) <= _LONGEST_REMEMBERED
    return _remembered(redactor, *names) if short else _suspect(redactor, "\n".join(names))


@lru_cache(maxsize=1_000)
def _remembered(redactor: Redactor, *names: str) -> bool:
    return _suspect(redactor, "\n".join(names))


def _short_named(event: NewEvent) -> NewEvent:
    """The event under a session's name of bounded length. What is stated of a session stands where that does, whatever
    a log of before calls it."""
    if len(event.stream) > _SHORT_NAME or len(event.session_id) > _SHORT_NAME:
        names = ("/".join(map(bounded_name, event.stream.split("/", 2))), bounded_name(event.session_id))
        if names != (event.stream, event.session_id):
            return msgspec.structs.replace(event, stream=names[0], session_id=names[1])
    return event


def _has_many(payload: Observation) -> bool:
    """Whether an observation has more files or hunks than are kept, however short they are."""
    return len(getattr(payload, "files", ())) > MOST_FILES or len(getattr(payload, "patch", ())) > MOST_HUNKS


def _within_limits(payload: Observation, long: bool, length: int, *, injected: bool) -> Observation:
    """The observation with all its parts cut to what is kept of them, and marked where memctl's own words were in it;
    itself where nothing is to be done. `long`: whether any part may be too long. `length` is that of its text or its
    input where it was cut before."""
    changes = _capped(payload, length) if long else {}
    for field in ("line", "parent", "call"):
        name = getattr(payload, field, "")
        if len(name) > _SHORT_NAME and (kept := bounded_name(name)) != name:
            changes[field] = kept
    own = "memctl" in (tool := getattr(payload, "tool", "")) and _OWN_TOOL.match(tool)
    if (injected or own) and not payload.injected:
        changes["injected"] = True
    if own and isinstance(payload, ToolOutcome) and payload.text != _CUT:
        changes |= {"text": _CUT, "length": payload.length or len(payload.text)}
    return msgspec.structs.replace(payload, **changes) if changes else payload


def _renamed(event: NewEvent, redactor: Redactor, counts: Counter[str]) -> NewEvent:
    """The event under names without secrets. They may come from a client, or from an export, and hold anything.

    A digest takes the place of one, so that what had one name still has one, and two names stay two.
    """
    changes = {}
    for field in ("stream", "session_id", "dedupe_key", "actor"):
        name: str = getattr(event, field)
        if redactor.names_a_secret(name):
            # Of a stream, what it is of stays: `session/<agent>/`.
            head, slash, last = name.rpartition("/") if field == "stream" else ("", "", name)
            if redactor.names_a_secret(head):
                head, slash, last = "", "", name
            changes[field] = f"{head}{slash}{_digest(last)}"
            counts["name"] += 1
    return msgspec.structs.replace(event, **changes) if changes else event


def _digest(name: str) -> str:
    """What takes the place of a name that holds a secret."""
    return f"x{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _called(object: dict[str, Any], key: str) -> str:
    """What a value of an object is called: by its key, or by the name that stands beside a key for values."""
    for naming in _NAMING.get(key[-5:], ()):
        name = object.get(key[:-5] + naming)
        if name.__class__ is str and 0 < len(name) <= _LONGEST_NAMING:
            return name
    return key


def _option(before: Any, pair: bool) -> str:
    """What a list's next value belongs to: an option, as `--token`, a header, as `X-Api-Key`, or in one of a list's
    pairs its first value; "" where none stands before it."""
    if before.__class__ is not str or len(before) > _LONGEST_NAMING or not (pair or "-" in before):
        return ""
    word = before.lstrip("-")
    return before if len(word) > 2 and word.translate(_OF_NAMES).isalnum() else ""


def _collect(value: Any, strings: list[str], key: str = "", depth: int = 0, *, listed: bool = False) -> bool:
    """Gather every string, those of objects with their keys. Whether something cannot be stored as it stands. `listed`:
    the value stands in a list."""
    if isinstance(value, Hunk):
        strings.extend(value.lines)
        return max(abs(value.old_start), abs(value.new_start)) > _MOST_COUNTED
    if isinstance(value, msgspec.Struct):
        odd = False
        for inner in msgspec.structs.astuple(value):
            if inner.__class__ is str:
                if inner:
                    strings.append(inner)
            elif inner.__class__ is int:
                odd |= abs(inner) > _MOST_COUNTED
            elif inner and inner is not True:
                odd |= _collect(inner, strings)
        return odd
    if isinstance(value, str):
        strings.append(f'"{key}": "{value}"' if key else value)
        return False
    if isinstance(value, dict):
        return _collect_object(value, strings, depth)
    if isinstance(value, (list, tuple)):
        return _collect_list(value, strings, key, depth, listed=listed)
    if isinstance(value, float):
        return not math.isfinite(value) or (depth > 0 and abs(value) > _LARGEST)
    if not depth:
        return isinstance(value, int) and abs(value) > _MOST_COUNTED
    return isinstance(value, int) and not _SMALLEST <= value <= _LARGEST


def _collect_object(value: dict[str, Any], strings: list[str], depth: int = 0) -> bool:
    strings.extend(value)
    odd = depth > _MAX_DEPTH
    for name, inner in value.items():
        if name[-5:] in _NAMING:
            name = _called(value, name)
        if inner.__class__ is str:
            strings.append(f'"{name}": "{inner}"' if name else inner)
        elif inner.__class__ is not bool and inner is not None and not odd:
            odd = _collect(inner, strings, name, depth + 1)
    return odd


def _collect_list(
    value: Sequence[Any], strings: list[str], key: str = "", depth: int = 0, *, listed: bool = False
) -> bool:
    odd = depth > _MAX_DEPTH
    if depth:
        strings.append("\n" * len(value))  # each part of an object counts, as numbers do by their keys
    before: Any = None
    pair = listed and len(value) == 2
    for inner in value:
        if not odd:
            odd = _collect(inner, strings, _option(before, pair) or key, depth + 1, listed=True)
        before = inner
    return odd


class _Rewrite:
    """Any value, with every string in it cleaned and redacted, and numbers that JSON cannot carry turned to text."""

    def __init__(self, redactor: Redactor, counts: Counter[str], whole: int) -> None:
        """`whole`: characters of all strings together."""
        self._redactor = redactor
        self._counts = counts
        self.injected = False
        """Whether memctl's own words were met."""
        self.length = 0
        """True length of the text or the input, where it was cut; that of an input is about that of all strings."""
        self._whole = whole
        self._cut = False
        """Whether something of the field at hand was left out."""
        self._before = ""
        """What a text without a key of its own stands behind."""
        self._left: float = math.inf
        """Characters of the field at hand that are still looked at."""

    def value(self, value: Any, key: str = "", depth: int = 0, *, listed: bool = False) -> Any:
        if isinstance(value, str):
            self._left -= min(len(value), TEXT_CAP)
            return self.text(value, key)
        if isinstance(value, (dict, list, tuple)) and depth > _MAX_DEPTH:
            return "[… nested too deeply …]"
        if isinstance(value, dict):
            kept = takewhile(self._has_room, value.items())
            return {self.value(name): self.value(inner, _called(value, name), depth + 1) for name, inner in kept}
        if isinstance(value, (list, tuple)):
            kept_of = zip(takewhile(self._has_room, value), chain((None,), value), strict=False)
            pair = listed and len(value) == 2
            return value.__class__(
                self.value(inner, _option(before, pair) or key, depth + 1, listed=True) for inner, before in kept_of
            )
        if isinstance(value, Hunk):
            return self._hunk(value)
        if isinstance(value, msgspec.Struct):
            return self._struct(value)
        if isinstance(value, float) and (not depth or not math.isfinite(value)):
            return value if math.isfinite(value) else str(value)
        # In an object, a float as large comes back from Postgres as a whole number, and an export shows it as one.
        if isinstance(value, (int, float)) and not _SMALLEST <= value <= _LARGEST:
            return f"{value:e}" if abs(value) < 10**300 else "[… number too large …]"
        return value

    def _has_room(self, _: object) -> bool:
        self._cut |= self._left <= 0
        return self._left > 0

    def _hunk(self, hunk: Hunk) -> Hunk:
        """A key spans lines: they are one text."""
        lines = tuple(self.value("\n".join(hunk.lines)).split("\n"))
        found = Hunk(_counted(hunk.old_start), _counted(hunk.new_start), lines)
        return hunk if found == hunk else found

    def _struct(self, value: msgspec.Struct) -> msgspec.Struct:
        seen = isinstance(value, Observation)
        most = _MOST_COUNTED if seen else _MOST_STATED
        file = _of_key(value)
        fields = {
            name: (old, _counted(old, most) if old.__class__ is int else self._field(name, old, file, bounded=seen))
            for name in value.__struct_fields__
            if (old := getattr(value, name))
        }
        changes = {name: new for name, (old, new) in fields.items() if new != old}
        return msgspec.structs.replace(value, **changes) if changes else value

    def _field(self, name: str, value: Any, file: str, *, bounded: bool) -> Any:
        self._left, self._cut = MOST_SCANNED if bounded else math.inf, False
        self._before = f"{file}\n" if file and name == "text" else ""
        if name in ("text", "input"):
            kept = self.value(value)
            if self._cut:
                self.length = len(value) if isinstance(value, str) else self._whole
            return kept
        if name not in _NAMES or not isinstance(value, str):
            return self.value(value)
        if self._redactor.names_a_secret(value):
            self._counts["name"] += 1
            return _digest(value)
        return clean(value)

    def text(self, text: str, key: str = "") -> str:
        text, private = drop_private(clean(text))
        if CONTEXT_BLOCK_OPEN in text:
            text, blocks = _without_injected(text)
            self.injected |= blocks > 0
        if private:
            self._counts["private"] += private
        before, after = (f'"{key}": "', '"') if key else (self._before, "")
        if len(text) > LONGEST_SCANNED:
            self._cut = True
            head, tail, counts = self._redactor.redact_ends(text, HEAD, TEXT_CAP - HEAD, MARGIN, before, after)
            text = with_note(head[:HEAD], len(text) - TEXT_CAP, tail[-(TEXT_CAP - HEAD) :])
        else:
            text, counts = self._redactor.redact(text, before, after)
        self._counts.update(counts)
        return text


def _without_injected(text: str) -> tuple[str, int]:
    """The text with memctl's own blocks cut, and how many. One with a heading of memctl's may have lost its end."""
    pieces: list[str] = []
    end, blocks, close = 0, 0, -2
    at = text.find(CONTEXT_BLOCK_OPEN)
    while at >= 0:
        inside = at + len(CONTEXT_BLOCK_OPEN)
        following = text.find(CONTEXT_BLOCK_OPEN, inside)
        if close != -1 and close < inside:
            close = text.find(CONTEXT_BLOCK_CLOSE, inside)
        ours = _HEADING.match(text, inside) is not None
        if ours or (close >= 0 and (following < 0 or close < following)):
            pieces += text[end:at], _CUT
            end = close + len(CONTEXT_BLOCK_CLOSE) if close >= 0 else len(text)
            blocks += 1
            following = text.find(CONTEXT_BLOCK_OPEN, end)
        at = following
    return "".join([*pieces, text[end:]]), blocks


def _counted(number: int, most: int = _MOST_COUNTED) -> int:
    return max(-most, min(number, most))


def _capped(payload: Observation, length: int) -> dict[str, Any]:
    """The fields of an observation that are too long, as they are kept. `length`: that of its text or its input where
    it was cut before; else 0."""
    changes: dict[str, Any] = {}
    noted = max(length, getattr(payload, "length", 0))
    slack = _NOTE if noted else 0  # what was cut before is not cut again
    if length and "length" in payload.__struct_fields__:
        changes["length"] = noted
    for name in payload.__struct_fields__:
        value = getattr(payload, name)
        if value.__class__ is str and len(value) > _OTHER_CAP:
            if name != "text":
                changes[name] = _cut(value, _OTHER_CAP)
            elif len(value) > TEXT_CAP + slack:
                changes["text"], true = capped(value)
                changes["length"] = max(true, noted)
    if isinstance(payload, ToolCalled):
        given = _bounded(payload.input, OBJECT_CAP + 2 * slack)
        if given is not payload.input:
            changes["input"] = given
            changes["length"] = max(len(msgspec.json.encode(payload.input).decode()), noted)
    elif isinstance(payload, NoticeReceived):
        data = _bounded(payload.data)
        if data is not payload.data:
            changes["data"] = data
    elif isinstance(payload, CommitRecorded):
        changes["files"] = tuple(_cut(file, LONGEST_FILE) for file in payload.files[:MOST_FILES])
    elif isinstance(payload, ToolOutcome) and payload.patch:
        patch = _shortened(payload.patch)
        if patch != payload.patch:
            changes["patch"] = patch
    return changes


def _cut(text: str, limit: int) -> str:
    # What was cut once is not cut again.
    return text if len(text) <= limit + _NOTE else capped(text, limit)[0]


def _bounded(value: dict[str, Any], most: int = OBJECT_CAP) -> dict[str, Any]:
    """An object whose strings, and keys, stay within so many characters; itself where they do."""
    if _size(value) <= TEXT_CAP:
        return value
    left = [most + 1]

    def bounded(value: Any) -> Any:
        if left[0] <= 0:
            return None
        if isinstance(value, str):
            value = _cut(value, min(TEXT_CAP, left[0]))
            left[0] -= len(value)
            return value
        if isinstance(value, dict):
            kept: dict[str, Any] = {}
            for name, inner in value.items():
                left[0] -= len(name) + 4
                if left[0] <= 0:
                    break
                kept[_cut(name, _OTHER_CAP)] = bounded(inner)
            return kept
        if isinstance(value, (list, tuple)):
            listed = []
            for inner in value:
                left[0] -= 4
                if left[0] <= 0:
                    break
                listed.append(bounded(inner))
            return listed
        return value

    kept: dict[str, Any] = bounded(value)
    return value if kept == value else kept


def _size(value: Any) -> int:
    if value.__class__ is str:
        return len(value)
    if isinstance(value, dict):
        size = sum(map(len, value)) + 4 * len(value)
        return size + sum(map(_size, value.values()))
    if isinstance(value, (list, tuple)):
        return 4 * len(value) + sum(map(_size, value))
    return len(value) if isinstance(value, str) else 0


def _shortened(patch: tuple[Hunk, ...]) -> tuple[Hunk, ...]:
    """The patch's first hunks, as far as `TEXT_CAP` characters go."""
    left = TEXT_CAP
    kept: list[Hunk] = []
    for hunk in patch:
        lines = []
        for line in hunk.lines:
            left -= len(line) + 1
            if left < 0:
                break
            lines.append(line)
        if lines:
            kept.append(hunk if len(lines) == len(hunk.lines) else Hunk(hunk.old_start, hunk.new_start, tuple(lines)))
        if left < 0:
            break
    return tuple(kept)
