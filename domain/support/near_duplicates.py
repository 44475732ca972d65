"""Texts that say nearly the same, found without comparing each with each.

Each text is a set of its words and pairs of words; likeness is the share that two sets have in common (Jaccard). A
text's MinHash signature estimates it (Broder, "On the resemblance and containment of documents", 1997), and bands of
the signature put likely pairs into one bucket (Leskovec, Rajaraman, Ullman, "Mining of Massive Datasets", 3.4), so that
only those are compared.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from memctl.domain.support import patterns
from memctl.domain.support.text import tokens

if TYPE_CHECKING:
    import numpy

BANDS, ROWS = 20, 5
"""Of a signature. A pair alike by .85 meets in a bucket with a chance of .99999, by .6 with .80, by .1 with .0002: of
texts that have little in common hardly any are compared, however many there are."""

BUCKET = 64
"""Texts of one bucket that a new one may be compared with."""

COMPARED = 24
"""Texts that one is compared with, of all buckets: what is written ten thousand times costs no more than that."""

_PRIME = 0x100000001B3
"""Of the 64-bit FNV hash."""

_NUMBERS = patterns.compile(r"\d[\d.,:_-]*")
_DENIALS = patterns.compile(
    r"\b(?:not?|never|none|nothing|without|avoid|stop|neither|nor|cannot)\b|\w{1,20}n['’]t\b"
    r"|않|말고|말아|말 것|안\s|못|없|금지",
    patterns.I,
)
_DENIED = patterns.compile(rf"(?:\b(?:do|does|did)\s+)?(?:{_DENIALS.pattern})", patterns.I)
_TURNS = patterns.compile(
    r"\b(?:instead|unless|except|only|before|after|more|less|(?:en|dis)abled?|removed?|adde?d?|pass(?:e[sd])?|"
    r"fail(?:s|ed|ing)?|fixed|broken|true|false|on|off)\b|대신|만\s",
    patterns.I,
)


def features(text: str) -> frozenset[int]:
    """The words of a text and their neighbours, as 32-bit numbers."""
    words = tokens(text)
    found = {zlib.crc32(word.encode("utf-8", "surrogatepass")) for word in words}
    found.update(zlib.crc32(f"{one}\0{next_}".encode("utf-8", "surrogatepass")) for one, next_ in pairwise(words))
    return frozenset(found)


def likeness(one: frozenset[int], other: frozenset[int]) -> float:
    """The share of features that two texts have in common: 0 to 1."""
    union = len(one | other)
    return round(len(one & other) / union, 4) if union else 0.0


def numbers(text: str) -> frozenset[str]:
    """Numbers, versions, dates and times in a text: texts that differ in one say different things."""
    return frozenset(found.strip(".,:_-") for found in _NUMBERS.findall(text))


def denies(text: str) -> bool:
    """Whether there is a negation in a statement."""
    return _DENIALS.search(text) is not None


def but_for_numbers(text: str) -> frozenset[int]:
    """The features of a text in which all numbers are one."""
    return features(_NUMBERS.sub(" 0 ", text))


def but_for_denials(text: str) -> frozenset[int]:
    """The features of what a statement says, or says is not so."""
    return features(_DENIED.sub(" ", text))


def turns(text: str) -> tuple[str, ...]:
    """The words that turn a statement into another one, sorted, as often as they come."""
    found = (*_DENIALS.findall(text), *_TURNS.findall(text))
    return tuple(sorted(word.strip().lower() for word in found))


@cache
def _hashes() -> tuple[numpy.ndarray, numpy.ndarray]:
    """Multiply-shift hash functions (Dietzfelbinger et al., 1997), the same in every process."""
    import numpy

    drawn = hashlib.shake_128(b"memctl").digest(BANDS * ROWS * 16)
    odd, add = numpy.frombuffer(drawn, dtype="<u8").reshape(2, -1)
    odd = odd | numpy.uint64(1)
    return odd[:, None], add[:, None]


def bands(group: str, found: frozenset[int]) -> numpy.ndarray:
    """The bands of a text's MinHash signature, as 20 numbers of 64 bits that only texts of one group can share."""
    import numpy

    if not found:
        raise ValueError("a text without words is like no other")
    odd, add = _hashes()
    values = numpy.fromiter(found, dtype=numpy.uint64, count=len(found))
    lowest = ((values * odd + add) >> numpy.uint64(32)).min(axis=1)
    folded = numpy.full(BANDS, zlib.crc32(group.encode("utf-8", "surrogatepass")), dtype=numpy.uint64)
    for row in lowest.reshape(BANDS, ROWS).T:
        folded = (folded ^ row) * _PRIME
    return folded


def likely_pairs(signatures: numpy.ndarray) -> Iterator[tuple[int, int]]:
    """Pairs of rows (lower first) that share a band, each once; `signatures` has a row of `bands` for each text.

    Time and memory grow with the number of texts: each is compared with `COMPARED` that came before it, and in a bucket
    with the first `BUCKET` only.
    """
    import numpy

    met: set[tuple[int, int]] = set()
    compared = [0] * len(signatures)
    if not len(signatures):
        return
    for place in range(signatures.shape[1]):
        band = signatures[:, place]
        order = numpy.argsort(band, kind="stable")
        starts = numpy.flatnonzero(numpy.diff(band[order], prepend=~band[order[:1]]))
        ends = numpy.append(starts[1:], len(order))
        several = ends - starts > 1
        for start, end in zip(starts[several].tolist(), ends[several].tolist(), strict=True):
            members = order[start:end].tolist()
            for at, number in enumerate(members[1:], 1):
                for other in members[: min(at, BUCKET)]:
                    if compared[number] == COMPARED:
                        break
                    if (other, number) not in met:
                        met.add((other, number))
                        compared[number] += 1
                        yield other, number
