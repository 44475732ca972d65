"""Text as rules see it: the canonical form that keys are made of, and the words that lexical search is made of."""

import hashlib
import math
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

import Stemmer

from memctl.domain.support import patterns

# --- canonical text ---

# Punctuation that carries meaning inside code, and `_`, which belongs to words there.
_CODE_MARKS = "+#./!=<>-"
_APOSTROPHE = patterns.compile(r"(?<=[^\W\d_])['’](?=[^\W\d_])")
_OPERATOR = patterns.compile(r"[!=]=+|<=+>?|>=+|=>|->|<-|<<|>>|[+/-]=")
_LEADING = patterns.compile(r"--?|(?:\.{0,2}/)+|[.#]")  # a flag, a path, a dot file, a number of an issue
_TRAILING = patterns.compile(r"\++|#")  # C++, C#


_LATER = """
558 58b-58c 5c8-5c9 88f 897 b53-b54 c5c cdc cf3 ece 1acf-1af0 1c89-1c8a 208f 209d-209f a7cb-a7cf a7d2 a7d4
a7da-a7f1 ab6c-ab6d 105c0-105f3 107bb-107bf 10940-10959 10d40-10d85 10ec2-10eff 1123f-11241 11380-113e2
116d0-116e3 11b0a-11bf9 11db0-11df1 11f00-11f5a 1246f 12475-1247f 12550-12686 1342f 13440-143fa 16100-16139
16d40-16d79 16ea0-16ed3 16ff2-16ff6 187f8-187ff 18cd6-18cff 18d09-191d2 1b123-1b132 1b155 1b168 1ccf0-1ccf9
1d127-1d128 1d250-1d2d3 1d6a6 1df1f-1dfff 1e030-1e08f 1e4d0-1e6ff 2b739-2b73f 2b81e 2cea2-2cead 2ebf0-2ee5d
31350-3fc3f
"""
"""Letters, marks and digits that Unicode 15 to 18 added to the 14.0 of Python 3.11, with the places still free between
them. Every version of Python takes them for what 3.11 does, for nothing, so that all make the same keys."""

_LATER_LETTER = patterns.compile(
    "[" + "".join("-".join(rf"\x{{{end}}}" for end in each.split("-")) for each in _LATER.split()) + "]"
)


MOST_MARKS = 30
"""Marks on one letter that count, as in Unicode's stream-safe text: to sort them takes time square in their number."""

_MANY_MARKS = patterns.compile(rf"\p{{M}}{{{MOST_MARKS + 1},}}")


def composed(text: str) -> str:
    """The text in one spelling of each letter (NFKC), with a blank for each that is newer than Unicode 14.0."""
    if text.isascii():
        return text
    text = _LATER_LETTER.sub(" ", text)
    if _MANY_MARKS.search(text):
        text = _MANY_MARKS.sub(lambda found: found[0][:MOST_MARKS], text)
    return unicodedata.normalize("NFKC", text)


class Blanked(dict[int, int]):
    """A table for `str.translate`: all but some characters, and those between two, becomes a blank."""

    def __init__(self, but: str, first: str = "", last: str = "") -> None:
        super().__init__((ord(character), ord(character)) for character in but)
        self._between = range(ord(first), ord(last) + 1) if first else range(0)

    def __missing__(self, code: int) -> int:
        self[code] = kept = code if code in self._between else 0x20
        return kept


class Runs:
    """What stands in a text between all but some ASCII characters, of which `?` is none: what a pattern finds, in a
    tenth of the time."""

    def __init__(self, of: str) -> None:
        self._table = bytes(code if chr(code) in of else 0x20 for code in range(256))

    def within(self, text: str) -> list[str]:
        return text.encode("ascii", "replace").translate(self._table).decode("ascii").split()


class _Keeping(dict[int, str | int]):
    """A table for `str.translate`: letters, marks, digits and the characters given stay, all else becomes a space."""

    def __init__(self, characters: str) -> None:
        super().__init__((ord(character), character) for character in characters)

    def __missing__(self, code: int) -> str | int:
        kept: str | int = code if unicodedata.category(chr(code))[0] in "LMN" else " "
        self[code] = kept
        return kept


_CANONICAL = _Keeping("_" + _CODE_MARKS)


def digest_of(text: str, digits: int = 16) -> str:
    """The first hexadecimal digits of the SHA-256 of a text, be it no valid Unicode."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]


def canonical(text: str) -> str:
    """One spelling for texts that differ only in form: NFKC, lower case, no punctuation, single spaces.

    Inside tokens of code `+ # . _ - / ! = < >` stay, so C, C++ and C# remain three things, and so do `--no-verify` and
    `verify`. Idempotent, and the same for every Unicode spelling of one text whose letters have 30 marks at most.
    """
    lowered = composed(_APOSTROPHE.sub("", composed(text)).lower())
    return " ".join(filter(None, map(_canonical_word, lowered.translate(_CANONICAL).split())))


def _canonical_word(word: str) -> str:
    core = word.strip(_CODE_MARKS)
    if not core.strip("_"):
        return word if _OPERATOR.fullmatch(word) else ""
    before, after = word.split(core, 1) if not word.startswith(core) else ("", word[len(core) :])
    if before and _LEADING.fullmatch(before):
        core = before + core
    if after and (trailing := _TRAILING.match(after)):
        core += trailing[0]
    if after.startswith(">") and ("<" in core or before == "<"):
        core = (before if before == "<" else "") + core + ">"  # List<T>, <div>
    return core


# --- words ---

# BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009). The index multiplies by the IDF.
BM25_K1 = 1.2
BM25_B = 0.75
BM25_AVERAGE_LENGTH = 64.0  # tokens of a memory; a fixed number, so that a document's vector never depends on others

_LONGEST_TOKEN = 64  # characters; longer ones are encoded data, which nobody types into a search
_COMMON = 256
"""Characters of the longest word whose tokens are kept: 65,536 words of a megabyte would fill any memory."""
_WORDS = _Keeping("_.-/:+#")
_JOINTS = "_.-/:+#"
_JOINT = patterns.compile(r"[_.\-/:+#]+")
# Scripts written without spaces between words, or whose words end in particles: cut into pairs of characters.
_PAIRED = r"\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_RUN = patterns.compile(rf"[{_PAIRED}]+|[^{_PAIRED}]+")
_PAIRED_START = patterns.compile(rf"[{_PAIRED}]")
_PARTING = patterns.compile(r"[/:]+")
_CASES = patterns.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[^A-Z]+|[A-Z]+")
_SHORT_NAME = patterns.compile(r"[A-Za-z](?:\+\+|#)")  # C++, C#: what is left of them without their marks is one letter
_ENGLISH = Stemmer.Stemmer("english", 0)  # no cache of its own: it is not made for threads, and ours below is

_STOP_TEXT = """
a about above after again all am an and any are as at be because been before being below between both but by can could
did do does doing down during each few for from further had has have having he her here hers him his how i if in into
is it its just me more most my no nor not now of off on once only or other our ours out over own same she should so
some such than that the their theirs them then there these they this those through to too under until up very was we
were what when where which while who whom why will with would you your yours im ive id dont doesnt didnt isnt wasnt
cant wont thats
"""
_STOP_WORDS = frozenset(_STOP_TEXT.split())


def tokens(text: str) -> list[str]:
    """The words of a text for lexical search, in order, repeated as they repeat.

    English words are lowered and stemmed, and stop words dropped; identifiers and paths are cut at case, `_ . - / :`
    and given whole as well; Hangul, Kana and Han are cut into pairs of characters; numbers stay.
    """
    words = _APOSTROPHE.sub("", composed(text)).translate(_WORDS).split()
    return [token for word in words for token in (_known_tokens if len(word) <= _COMMON else _word_tokens)(word)]


def sparse(text: str) -> tuple[list[int], list[float]]:
    """A document's sparse vector: sorted 32-bit indices of its tokens, and their BM25 weights without the IDF."""
    counts = Counter(map(_index, tokens(text)))
    length = counts.total()
    norm = BM25_K1 * (1 - BM25_B + BM25_B * length / BM25_AVERAGE_LENGTH)
    indices = sorted(counts)
    return indices, [counts[index] * (BM25_K1 + 1) / (counts[index] + norm) for index in indices]


def sparse_query(text: str) -> tuple[list[int], list[float]]:
    """A query's sparse vector: each token once, with weight 1.

    Of a text of several lines (a report, an output) the first line says what it is about: words that only the others
    have weigh less, and words that come again and again weigh more. Of an address only the end of its path counts, two
    names of it: host and owner are shared by whatever else was said of that place.
    """
    text = short_addresses(text)
    head, _, rest = text.strip().partition("\n")
    counts = Counter(map(_index, tokens(head)))
    if not rest:
        return sorted(counts), [1.0] * len(counts)
    first = frozenset(counts)
    counts.update(map(_index, tokens(rest)))
    indices = sorted(counts)
    return indices, [(1 + math.log(counts[i])) * (1.0 if i in first else BODY_WEIGHT) for i in indices]


_ADDRESS = patterns.compile(r"\bhttps?://([^\s<>\"'`]+)")


def short_addresses(text: str) -> str:
    """A text with the ends of its addresses alone: whatever else was said of that place shares host and owner."""
    return _ADDRESS.sub(_end_of, text)


def _end_of(address: patterns.Match[str]) -> str:
    host, *path = [name for name in address[1].split("/") if name] or [address[0]]
    return "/".join(path[-2:] or [host])


BODY_WEIGHT = 0.3
"""Of .5, .3 and 1, what found most duplicates of one half of 125 bug reports: words alone had recall@1 .424, .508 and
.475 by 1, .5 and .35, and recall@5 .695, .763 and .780 (`tests/eval/measures/duplicate_reports.py`)."""


def estimate_tokens(text: str) -> int:
    """About how many tokens a language model counts, on the high side: four ASCII characters a token, two of other
    alphabets, and each Hangul, Kana or Han character one."""
    wide = sum(character >= "\u1100" for character in text)
    ascii_ = sum(character < "\x80" for character in text)
    return math.ceil(ascii_ / 4 + (len(text) - wide - ascii_) / 2 + wide)


def _index(token: str) -> int:
    return zlib.crc32(token.encode("utf-8", "surrogatepass"))


def _word_tokens(word: str) -> tuple[str, ...]:
    if word.isascii() and word.isalpha() and (word[1:].islower() or word.isupper() or len(word) == 1):
        plain = word.lower()  # as most words are: of one case, with nothing to cut them at
        return (token,) if plain not in _STOP_WORDS and len(token := _ENGLISH.stemWord(plain)) <= _LONGEST_TOKEN else ()
    found: list[str] = []
    runs = _RUN.findall(word)
    for run in runs:
        if _PAIRED_START.match(run):
            found += _pairs(run, alone=len(runs) == 1)
        else:
            found += _name_tokens(run)
    return tuple(token for token in found if len(token) <= _LONGEST_TOKEN)


_known_tokens = lru_cache(maxsize=1 << 16)(_word_tokens)


def _pairs(run: str, alone: bool) -> Iterator[str]:
    if len(run) > 1:
        yield from (run[k : k + 2] for k in range(len(run) - 1))
    elif alone:  # else it is a particle at the end of a foreign word
        yield run


def _name_tokens(run: str) -> Iterator[str]:
    """A path whole, each of its segments whole, and what the segments are made of."""
    if short := _SHORT_NAME.match(run):
        yield short[0].lower()
    run = run.strip(_JOINTS)
    segments = [segment.strip(_JOINTS) for segment in _PARTING.split(run)]
    if len(segments) > 1:
        yield run.lower()
    for segment in segments:
        pieces = [piece.lower() for part in _JOINT.split(segment) for piece in _CASES.findall(part)]
        if len(pieces) > 1:
            yield segment.lower()
        for piece in pieces:
            if piece not in _STOP_WORDS:
                yield _ENGLISH.stemWord(piece) if piece.isascii() and piece.isalpha() else piece
