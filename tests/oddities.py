"""Events made odd: each text, number and name of what clients tell may be what nobody writes, and what the API lets
through all the same, as a relay sends it. Every choice is drawn."""

from __future__ import annotations

import json
import random
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

import msgspec
from mangled import Mangler

from memctl.api.write.remote_ingest import BadDelivery, NoSuchEvent, NotForRelays, received, sent
from memctl.domain.events.event import NewEvent
from memctl.domain.events.observations import Observation

SPECIAL = (
    ":", "%", "\n", "\0", "\r\n", "\t", "\ud800", "\u202e", "\u0300", "İ", "ﬀ", "ß", "\u200b", "\ufeff", "١٢", "//",
    "/../", "/", "\\", "~", "*", "#", "@", "{}", "%s", "\x1b[31m", "\x7f", "\u2028", "\u00a0", "'", '"', "`", "$(",
    "<!--", "𝄞", " ", ".", "..", "-", "|", "&&", ";", "=", "\\u0000", "Ⅷ", "ſ", "K", "한", "\u1112\u1161\u11ab",
)  # fmt: skip
REPEATED = (
    "a", "1", "f", "9", "한", "é", "\n", "[", "(", "{", "'", '"', "`", "$(", "<", "\\", "0x", "%", "- ", "# ", "| ",
    "a ", "a/", "../", "a.", "x=1 ", "Error: x\n", '  File "a.py", line 1\n', "if a; then ", "<<E ",
    "at f (a.js:1:1)\n",
    "cd a && ", "\ta", "diff --git a/a b/a\n", "@@ -1 +1 @@\n", "$x", "**", "https://a.b/", "a@b.c ", "use x not y. ",
)  # fmt: skip
NUMBERS = (
    "0x" + "f" * 5_000, "9" * 5_000, "1e999999", "-0", "NaN", "Infinity", "0.1e-400", "1_000", "٣", "0b" + "1" * 9_000,
    "0o" + "7" * 9_000, "2026-13-45", "99999-01-01T00:00:00Z", "1" + "_1" * 3_000, "²", "½",
)  # fmt: skip
INTEGERS = (0, -1, 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 10**30)
FLOATS = (0.0, -0.0, 1e308, 5e-324, 2.0**63, 1e300, 0.1 + 0.2)


class Odd:
    """Makes events odd. `share`: how many of an event's values, about."""

    def __init__(self, luck: random.Random, share: float) -> None:
        self._luck, self._share = luck, share
        self._mangler = Mangler(luck.getrandbits(32))
        self._seen: list[str] = ["x"]
        self._streams: dict[str, str] = {}
        self._places: dict[str, str] = {}

    def events(self, told: Sequence[NewEvent]) -> list[NewEvent]:
        return [self._event(each) for each in told]

    def _event(self, event: NewEvent) -> NewEvent:
        told = json.loads(msgspec.json.encode(sent(event))) | {
            "payload": self._value(msgspec.to_builtins(event.payload)),
            "location": self._placed(event.location),
        }
        if isinstance(event.payload, Observation):
            if event.stream not in self._streams:
                self._streams[event.stream] = self._named(event.stream)
            told["stream"] = self._streams[event.stream]
            told["session_id"] = told["stream"].split("/", 2)[-1]
        try:
            [found] = received(json.dumps({"events": [told]}).encode())
        except (NotForRelays, BadDelivery, NoSuchEvent):
            return event
        return found

    def _placed(self, location: str) -> str:
        if location not in self._places:
            odd = self._luck.random() < self._share
            self._places[location] = self.text(location) if odd else location
        return self._places[location]

    def _named(self, stream: str) -> str:
        """Another name for a session, now and then all but that of another one."""
        if self._luck.random() > 0.6 or stream.count("/") < 2:
            return stream
        head, agent, session = stream.split("/", 2)
        if self._streams and self._luck.random() < 0.7:
            session = self._luck.choice([*self._streams.values()]).split("/", 2)[-1]
        session = self.text(session).replace("\0", "") or "s"  # such an event the API refuses
        if self._luck.random() < 0.1:
            agent = self.text(agent).replace("/", "").replace("\0", "") or "a"
        return f"{head}/{agent}/{session}"

    def _value(self, value: Any) -> Any:
        odd = self._luck.random() < self._share
        if isinstance(value, dict):
            found = {(self.text(key) if odd and self._luck.random() < 0.1 else key): self._value(each)
                     for key, each in value.items()}  # fmt: skip
            return self._mangler.value(found) if odd and self._luck.random() < 0.05 else found
        if isinstance(value, list):
            return [self._value(each) for each in value] * (self._luck.choice((1, 1, 2, 300)) if odd else 1)
        if isinstance(value, bool) or value is None or not odd:
            return value
        if isinstance(value, int):
            return self._luck.choice(INTEGERS)
        if isinstance(value, float):
            return self._luck.choice(FLOATS)
        return self.text(value) if isinstance(value, str) else value

    def text(self, text: str) -> str:
        """A text made odd, in one to three ways."""
        for _ in range(self._luck.choice((1, 1, 2, 3))):
            text = self._text(text)
        self._seen = [*self._seen[-200:], text[:2_000]]
        return text

    def _text(self, text: str) -> str:
        luck = self._luck
        at = luck.randint(0, len(text))
        end = min(len(text), at + luck.choice((0, 1, 7, 60)))
        match luck.randrange(11):
            case 0:
                return luck.choice(REPEATED) * luck.choice((2, 60, 600, 3_000, 40_000))
            case 1:
                return text[:at] + luck.choice(REPEATED) * luck.choice((2, 60, 600, 3_000)) + text[end:]
            case 2 | 3:
                return text[:at] + luck.choice(SPECIAL) + text[end:]
            case 4:
                return luck.choice(
                    (text.upper(), text.lower(), text.swapcase(), text.title(), text.strip(), text[::-1])
                )
            case 5:
                return unicodedata.normalize(luck.choice(("NFC", "NFD", "NFKC", "NFKD")), text)
            case 6:
                return luck.choice((text + text, f" {text}", f"{text} ", f"{text}\n", "", text[:at]))
            case 7:
                return luck.choice(self._seen)
            case 8:
                return luck.choice(NUMBERS)
            case 9:
                return re.sub(r"\d+", lambda _: luck.choice(NUMBERS), text, count=3)
            case _:
                try:
                    return json.dumps(self._mangler.value(json.loads(text)), ensure_ascii=luck.random() < 0.5)
                except (ValueError, RecursionError):
                    return re.sub(r"\w+", lambda _: luck.choice(self._seen), text, count=luck.randint(1, 3))
