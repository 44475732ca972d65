"""A phrase in the forms in which it may be written, and a way of undoing them that shares no code with memctl's."""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import json
import quopri
import re
import unicodedata
from collections.abc import Callable, Iterator
from urllib.parse import quote, quote_plus, unquote_plus


def _between(phrase: str, sign: str) -> str:
    return sign.join(phrase)


def _broken(phrase: str, *before: str) -> str:
    """A phrase over three lines, broken within words, with something before each line."""
    third = len(phrase) // 3
    parts = (phrase[:third], phrase[third : 2 * third], phrase[2 * third :])
    marks = (*before, "", "")[:2] if len(before) > 1 else (*before, *before)
    return parts[0] + "".join(f"\n{mark}{part}" for mark, part in zip(marks, parts[1:], strict=True))


def _dumped(data: bytes, together: int) -> str:
    """As `xxd` shows bytes two by two, and `hexdump -C` one by one."""
    lines = []
    for at in range(0, len(data), 16):
        piece = data[at : at + 16]
        pairs = " ".join(piece[n : n + together].hex() for n in range(0, len(piece), together))
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in piece)
        lines.append(f"{at:08x}: {pairs:<39}  {shown}" if together == 2 else f"{at:08x}  {pairs:<47}  |{shown}|")
    return "\n".join(lines) + "\n"


ALIKE, LATIN_ALIKE = "\u0430\u0435\u043e\u0440\u0441\u0445\u03bf\u03bd\u03b9\u0397\u03a4", "aeopcxoviHT"
"""Letters of Cyrillic and Greek, and the Latin ones that they look like."""

FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "capitals": str.upper,
    "other blanks": lambda phrase: phrase.replace(" ", "\u00a0 \t"),
    "full width": lambda phrase: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in phrase),
    "mathematical": lambda phrase: "".join(chr(0x1D41A + ord(c) - 97) if "a" <= c <= "z" else c for c in phrase),
    "zero width": lambda phrase: _between(phrase, "\u200b"),
    "soft hyphens": lambda phrase: _between(phrase, "\u00ad"),
    "word joiners": lambda phrase: "\u202d" + _between(phrase, "\u2060"),
    "colours": lambda phrase: _between(phrase, "\x1b[1;31m"),
    "colours as programs write them": lambda phrase: phrase[:4] + "\\x1b[31m" + phrase[4:7] + "\\033[0m" + phrase[7:],
    "JSON": lambda phrase: json.dumps({"said": _between(phrase, "")}),
    "JSON in JSON": lambda phrase: json.dumps(json.dumps({"said": phrase.replace(" ", "\n")})),
    "escapes of JSON": lambda phrase: "".join(f"\\u{ord(c):04x}" for c in phrase),
    "escapes of bytes": lambda phrase: "".join(f"\\x{byte:02x}" for byte in phrase.encode()),
    "entities": lambda phrase: "".join(f"&#{ord(c)};" for c in phrase),
    "entities in hex": lambda phrase: "".join(f"&#x{ord(c):X};" for c in phrase),
    "an address": lambda phrase: "https://example.org/?q=" + quote(phrase),
    "a form": lambda phrase: "q=" + quote_plus(phrase),
    "percent signs": lambda phrase: "".join(f"%{byte:02x}" for byte in phrase.encode()),
    "an address in an address": lambda phrase: quote(quote(phrase)),
    "broken lines": lambda phrase: _broken(phrase, ""),
    "a diff": lambda phrase: _broken(phrase, "+ ", "-"),
    "a quotation": lambda phrase: _broken(phrase, "> "),
    "numbered lines": lambda phrase: _broken(phrase, "    12→", "    13→"),
    "lines numbered by cat": lambda phrase: _broken(phrase, "    12\t", "    13\t"),
    "lines of a compiler": lambda phrase: _broken(phrase, "12 | ", "13 | "),
    "a listing": lambda phrase: _broken(phrase, "12: ", "13: "),
    "base64": lambda phrase: base64.b64encode(f"so {phrase} it is".encode()).decode(),
    "base64 of addresses": lambda phrase: base64.urlsafe_b64encode(f"a {phrase}".encode()).decode().rstrip("="),
    "base64 in lines": lambda phrase: base64.encodebytes(f"{'some words before ' * 4}{phrase}".encode()).decode(),
    "hex": lambda phrase: phrase.encode().hex(),
    "other joints": lambda phrase: phrase.replace(" ", "-"),
    "no joints": lambda phrase: phrase.replace(" ", ""),
    "a name in code": lambda phrase: "".join(word.capitalize() for word in phrase.split()),
    "a constant": lambda phrase: "_".join(phrase.upper().split()),
    "a dotted name": lambda phrase: ".".join(phrase.split()),
    "letters of Cyrillic": lambda phrase: phrase.translate(str.maketrans(LATIN_ALIKE[:6], ALIKE[:6])),
    "letters of Greek": lambda phrase: phrase.translate(str.maketrans(LATIN_ALIKE[6:], ALIKE[6:])),
    "quoted-printable": lambda phrase: phrase[:5] + "=\n" + phrase[5:].replace(" ", "=20"),
    "quoted-printable of a mail": lambda phrase: quopri.encodestring(f"caf\u00e9 {phrase}".encode()).decode(),
    "base64 of UTF-16": lambda phrase: base64.b64encode(f"so {phrase} it".encode("utf-16-le")).decode(),
    "hex of UTF-16": lambda phrase: phrase.encode("utf-16-le").hex(),
    "in reverse": lambda phrase: phrase[::-1],
    "ROT13": lambda phrase: codecs.encode(phrase, "rot13"),
    "base32": lambda phrase: base64.b32encode(f"so {phrase} it is".encode()).decode(),
    "base32 in small letters": lambda phrase: base64.b32encode(f"a {phrase}".encode()).decode().rstrip("=").lower(),
    "a list of bytes": lambda phrase: str(list(phrase.encode())),
    "a list of bytes in hex": lambda phrase: ", ".join(f"0x{byte:02X}" for byte in phrase.encode()),
    "bytes over lines": lambda phrase: "{\n  " + ",\n  ".join(map(str, phrase.encode())) + "\n}",
    "characters of SQL": lambda phrase: " || ".join(f"CHAR({byte})" for byte in phrase.encode()),
    "binary digits": lambda phrase: " ".join(f"{byte:08b}" for byte in phrase.encode()),
    "escapes of style sheets": lambda phrase: "".join(f"\\{ord(c):06x}" for c in phrase),
    "lines of a failed test": lambda phrase: "E   " + _broken(phrase, "E   ", "E   "),
    "lines of a log": lambda phrase: _broken(phrase, "2026-11-20T09:00:01.123Z ", "2026-11-20T09:00:02.5Z "),
    "lines of a log with a level": lambda phrase: _broken(
        phrase, "[2026-11-20 09:00:02,5] info: ", "[2026-11-20 09:00:12,53] info: "
    ),
    "words of a log": lambda phrase: "2026-11-28T10:00:01Z " + phrase.replace(" ", "\n2026-11-28T10:00:02Z "),
    "lines of a journal": lambda phrase: _broken(
        phrase, "Nov 20 09:00:01 host app[12]: ", "Nov 20 09:00:02 host app[12]: "
    ),
    "lines and who wrote them": lambda phrase: _broken(
        phrase, "^a1b2c3d4 (Ann Lee 2026-11-20 09:00:01 +0900 12) ", "a1b2c3d4 (Ann     2026-11-20 09:00:01 +0900 13) "
    ),
    "lines of a search": lambda phrase: "src/a.md:12:" + _broken(phrase, "src/a.md:13:", "src/a.md:14:"),
    "lines around what a search found": lambda phrase: "src/a.md-12-" + _broken(phrase, "src/a.md:13:", "src/a.md-14-"),
    "struck through": lambda phrase: _between(phrase, "\u0336"),
    "a dump": lambda phrase: _dumped(f"so {phrase} it is".encode(), 2),
    "a canonical dump": lambda phrase: _dumped(f"so {phrase} it is".encode(), 1),
    "hex in pairs": lambda phrase: phrase.encode().hex(":").upper(),
    "emphasis": lambda phrase: phrase.replace(" ", "** **"),
    "emphasis on one word": lambda phrase: "**" + phrase.replace(" ", "** ", 1),
    "commas": lambda phrase: phrase.replace(" ", ", "),
    "cells of a table": lambda phrase: f"| {phrase.replace(' ', ' | ')} |",
    "cells of a drawn table": lambda phrase: f"│ {phrase.replace(' ', ' │ ')} │",
    "quotation marks": lambda phrase: phrase.replace(" ", ' "', 1) + '"',
    "signs of other scripts": lambda phrase: phrase.replace(" ", "\u3001"),
    "hyphens at ends of lines": lambda phrase: _broken(phrase, "").replace("\n", "-\n"),
    "a comment with hyphens": lambda phrase: "// " + _broken(phrase, "// ").replace("\n", "-\n"),
    "a comment of documentation": lambda phrase: "//! " + phrase.replace(" ", "\n//! "),
    "a comment of TeX": lambda phrase: "% " + _broken(phrase, "% "),
    "a string over lines": lambda phrase: '"' + phrase.replace(" ", ' "\n    "', 1) + '"',
    "parts of a string": lambda phrase: phrase[:6] + '" + "' + phrase[6:],
    "emphasis in a word": lambda phrase: phrase[:6] + "**" + phrase[6:9] + "**" + phrase[9:],
    "tags in words": lambda phrase: phrase[:6] + '<b class="x">' + phrase[6:17] + "</b>" + phrase[17:],
    "a tag where a word may break": lambda phrase: phrase[:6] + "<wbr>" + phrase[6:],
    "a tag around a word": lambda phrase: "the <span>" + phrase[4:14] + "</span>" + phrase[14:],
    "a remark in a word": lambda phrase: phrase[:6] + "<!-- x -->" + phrase[6:],
    "tags that break lines": lambda phrase: phrase.replace(" ", "<br/>"),
    "cells in HTML": lambda phrase: phrase.replace(" ", "</td><td>"),
    "a row of a drawn table": lambda phrase: _broken(phrase, "│ "),
}
"""Each reads as the phrase to people, or is its base64, hex, ROT13 or reverse."""

NEAR: dict[str, Callable[[str], str]] = {
    "signs as in code": lambda phrase: phrase.replace(" ", "=>"),
    "signs in a word": lambda phrase: phrase[:6] + " =# " + phrase[6:],
}
"""The same letters with other signs between them."""

OF_ONE_LINE = [name for name, form in FORMS.items() if "\n" not in form("some words here")]
"""What a name or a path may hold, too."""


ESCAPE = re.compile(r"""\\(?:u[0-9a-f]{4}(?:\\u[0-9a-f]{4})*|x[0-9a-f]{2}|033|[n"\\])""", re.IGNORECASE)


def _meant(escape: re.Match[str]) -> str:
    """What an escape of one level stands for."""
    found = escape[0].lower()
    if found[1] == "u":
        return str(json.loads(f'"{found}"'))
    if found[1] == "x":
        return chr(int(found[2:], 16))
    return {"n": "\n", "0": "\x1b"}.get(found[1], found[1])


def _of_numbers(text: str) -> Iterator[str]:
    """What a text shows in digits: bytes in a list, in dumps, in base32, the code points of a style sheet."""
    text = text.replace("\\\\", "\\").replace("\\n", "\n")
    lines = [re.sub(r" {2}.*", "", line) for line in re.findall(r"[0-9a-f]{8}(?::| ) ([^\n]*)", text)]
    pairs = re.sub(r"[^0-9a-f]", "", "".join(lines))
    yield binascii.unhexlify(pairs[: len(pairs) // 2 * 2]).decode("utf-8", "replace")
    for digits, base in (
        (r"\b\d{2,3}\b", 10), (r"(?<=0x)[0-9A-F]{2}", 16), (r"\b[01]{8}\b", 2), (r"(?<=\\)[0-9a-f]{6}", 16),
    ):  # fmt: skip
        yield "".join(chr(int(each, base)) for each in re.findall(digits, text))
    for run in re.findall(r"\b[A-Za-z2-7]{16,}\b", text):
        whole = run[: len(run) // 8 * 8] if len(run) % 8 in (1, 3, 6) else run
        yield base64.b32decode(whole.upper() + "=" * (-len(whole) % 8)).decode("utf-8", "replace")
    yield re.sub(r"\n[^\s:]+[:-]\d+[:-]", "", text)


def undone(text: str) -> Iterator[str]:
    """What a text may stand for, by trying: slow, and without a bound."""
    yield from _of_numbers(text)
    for _ in range(6):
        text = unicodedata.normalize("NFKC", re.sub(r"\x1b\[[\d;]*m", "", text))
        text = "".join(each for each in text if unicodedata.category(each) not in ("Cf", "Mn"))
        yield text
        yield re.sub(r"-?\s*\n\s*(?:[+>│%-]|//!?|\d+(?:[:→\t]| \|))?\s*", "", text)
        yield re.sub(r"\s*\n\s*(?:[+>│%-]|//!?|\d+(?:[:→\t]| \|))?\s*", " ", text)
        behind = r"E +|\^?[0-9a-f]{8} [^(\n]*\([^)\n]*\) ?"
        behind += r"|\[?\d{4}-\d\d-\d\d[T ]\S+ (?:info: )?|\w{3} \d\d \S+ \S+ [^:\n]+: "
        yield re.sub(rf"\n(?:{behind})", "", text)
        yield re.sub(r"(?:[^\w'+-]|(?<!\w)'|'(?!\w))+", " ", text)
        bare = re.sub(r"""\*\*|["'] \+ ["']""", "", text)
        yield re.sub(r"<[^>]*>", "", bare)
        yield re.sub(r"<[^>]*>", " ", bare)
        yield text.translate(str.maketrans(ALIKE, LATIN_ALIKE))
        yield text[::-1]
        yield codecs.encode(text, "rot13")
        yield quopri.decodestring(text.encode()).decode("utf-8", "replace")
        for run in re.findall(r"[\w+/-]{12,}", re.sub(r"[\r\n]", "", text), re.ASCII):
            plain = run.replace("-", "+").replace("_", "/") + "AAA"  # for the padding
            for start in range(4):
                held = base64.b64decode(plain[start : start + (len(plain) - start) // 4 * 4])
                yield held.decode("utf-8", "replace")
                yield held.replace(b"\0", b"").decode("utf-8", "replace")
        for run in re.findall(r"(?:[0-9a-f]{2}[ :]?){6,}", text, re.IGNORECASE):
            pairs = re.sub(r"[ :]", "", run)
            for start in range(2):
                with_all = pairs[start : start + (len(pairs) - start) // 2 * 2]
                yield binascii.unhexlify(with_all).replace(b"\0", b"").decode("utf-8", "replace")
        text = ESCAPE.sub(_meant, text)
        text = html.unescape(unquote_plus(text))


def stands_in(phrase: str, text: str) -> bool:
    """Whether a phrase stands in a text in any of these ways, its words joined or apart."""
    said = "".join(phrase.split()).lower()
    return any(said in re.sub(r"[\s_.-]", "", each).lower() for each in undone(text))
