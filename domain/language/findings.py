"""What an agent's answer says that is worth keeping: how something is, what was done and why, what had been wrong.

A passage that says much, names code and gives a reason is worth keeping more often than one that does not. What the
agent says of itself seldom is. How much each counts was fitted on labelled answers (`findings.json`, `make calibrate`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from memctl.domain.events.facts import DecisionKind
from memctl.domain.failures.explanations import guesses, links, sentences
from memctl.domain.language.summaries import says_done, says_words
from memctl.domain.support import patterns
from memctl.domain.support.bounded import one_line
from memctl.domain.support.remembered import remembered

FILE = Path(__file__).with_suffix(".json")

MOST, MOST_OF_WORK = 6, 24
"""Findings that are taken from one answer, and from all answers of a piece of work: the likeliest."""

LEAST = 0.4
"""The chance from which on a passage is kept."""

SHORTEST, LONGEST, LONGEST_HEADING = 40, 360, 80
"""Characters of a finding, and of what it stands under."""

_NAMED = patterns.compile(r"[\"'`‘][^\"'`’\n]+[\"'`’]|\w*(?:[a-z][A-Z]|\w[._]\w|[A-Z]{3}|[A-Z]\d)\w*")
"""What is written like a name of code, or quoted."""
_WHY = patterns.compile(
    r"\b(?:because|due to|since (?:the|its?|there|that|they|an?|`)|so (?:that|both|all|each|every|neither|no|only|the|"
    r"it|they|`)|to (?:avoid|prevent|ensure|guarantee)|prevents|avoids|ensures|guarantees|instead of|rather than|"
    r"no longer|which (?:means|is why|lets|allows|makes|prevents)|(?:that|this)(?:['’]s| is) why|"
    r"the (?:real |actual |root |main )?(?:reason|cause|issue|problem|catch|trick|difference) (?:is|was)|"
    r"key (?:insight|finding|point|difference)|turns? out|by design|by default|on purpose|intentional(?:ly)?|"
    r"deliberate(?:ly)?|not (?:needed|required|supported|possible|necessary)|built[ -]in|regardless|"
    r"even (?:if|when|though)|unless|except|only|never|always|must|cannot|fall(?:s|ing)? back|"
    r"(?:can|do|does|is|are|was|were)(?:n['’]t| not))\b|"
    r"\bnot [^.;]{3,60}\bbut\b|(?:,|—) not\b|때문|대신|따라서",
    patterns.I,
)
"""What says why something is so, in contrast to what, or within which bounds."""
_ADVISES = patterns.compile(
    r"\b(?:should|recommend(?:ed|ation)?|suggest(?:ed|ion)?|consider|propos(?:e|ed|al)|(?:we|you|I|one) (?:could|would|"
    r"might)|optionally|let['’]s|I['’]d)\b",
    patterns.I,
)
"""What says how something could be."""
_NAME = patterns.compile(r"[^.!?]{1,80}? ?(?:—|–|:|;) (?=[A-Z])")
"""What is named before what was done with it."""
_SELF = patterns.compile(r"\b(?:I|[Mm]e|[Mm]y)\b")
_WRONG = patterns.compile(
    r"the (?:\w+ ){0,2}(?:cause|issue|problem|bug|errors?|failures?)\b|.{0,40}\broot cause\b", patterns.I
)
"""How begins what says what had been wrong."""
_LEANS_ON = patterns.compile(
    r"(?:this|that|it|its|these|those|they|so|which|instead|otherwise|because|not)\b", patterns.I
)
"""How begins what belongs to the sentence before it."""
_POINT = patterns.compile(r"(?:[-*•]|\d{1,2}[.)])\s+(?=\S)")
_HEADING = patterns.compile(r"\s*(?:#{1,6}\s+(?P<text>.+)|\*\*(?P<bold>[^*]+)\*\*:?)\s*")
_LABELLED = patterns.compile(r"\s*(?:#|\*\*[^*]+\*\*)")
_FENCED = patterns.compile(r"```.*?(?:```|\Z)", patterns.S)


class Finding(NamedTuple):
    text: str
    kind: DecisionKind
    of_work: bool
    """Whether it says what was done, or what had been wrong: then it is as good as the work."""
    chance: float
    """How likely it is worth keeping, 0 to 1, if no turn came after it."""


class Passage(NamedTuple):
    """Sentences of an answer that belong together, on one line. `leads_on`: the last one announces what follows it."""

    text: str
    leads_on: bool
    place: float
    """How far into the answer it stands, 0 to 1."""
    under: str = ""
    """The heading that it stands under, or what announces the list that it is a point of."""
    later: int = 0
    """How many turns of the same work came after it."""


class _Model(msgspec.Struct, frozen=True):
    weights: dict[str, float]
    fitted_on: str = ""


MODEL = msgspec.json.decode(FILE.read_bytes(), type=_Model)


@remembered(128, longest=16_384)
def found_in(answer: str) -> tuple[Finding, ...]:
    """What an answer says that is worth keeping if it is the last, in its own words and order."""
    likely = ((each, chance(each)) for each in passages_in(answer))
    return tuple(_finding(each, chance) for each, chance in likely if chance >= LEAST)


def found_in_work(answers: Sequence[str]) -> tuple[Finding, ...]:
    """What the answers of a piece of work say that is worth keeping, each text once, in the order in which they were
    said. What the work went on from is worth it less often: it was done, mended or put otherwise since."""
    found: dict[str, tuple[float, Finding]] = {}
    for later, answer in zip(range(len(answers) - 1, -1, -1), answers, strict=True):
        held = [(_after(each.chance, later), each) for each in found_in(answer)]
        found |= {each.text: (chance, each) for chance, each in _best(held, MOST) if chance >= LEAST}
    return tuple(each for _, each in _best(found.values(), MOST_OF_WORK))


def _best(found: Iterable[tuple[float, Finding]], most: int) -> list[tuple[float, Finding]]:
    """The likeliest of them, in their order."""
    kept = list(found)
    places = sorted(range(len(kept)), key=lambda at: (-kept[at][0], at))[:most]
    return [kept[at] for at in sorted(places)]


def _after(chance: float, later: int) -> float:
    """A chance once so many turns came after it."""
    return _chance_of(math.log(chance / (1 - chance)) + MODEL.weights.get("later", 0.0) * _turns(later))


def _finding(passage: Passage, chance: float) -> Finding:
    text = passage.text
    wrong, done = _WRONG.match(text) is not None, says_done(_NAME.sub("", text, 1), sure=True)
    said = f"{passage.under}: {text}" if passage.under else text
    if wrong and links(text):
        return Finding(said, "cause", True, chance)
    label = "Done: " if done else "Advised: " if _ADVISES.search(text) else ""
    return Finding(f"{label}{said}", "finding", done or wrong, chance)


def chance(passage: Passage, weights: Mapping[str, float] = MODEL.weights) -> float:
    """How likely a passage is worth keeping, 0 to 1; 0 of a question, a guess, and what says next to nothing."""
    text = passage.text
    if len(text) < SHORTEST or text.endswith("?") or guesses(text) or not says_words(text):
        return 0.0
    return _chance_of(math.fsum(weights.get(name, 0.0) * value for name, value in features(passage).items()))


def _chance_of(odds: float) -> float:
    return min(max(round(1 / (1 + math.exp(-max(min(odds, 40.0), -40.0))), 4), 0.0001), 0.9999)


def _turns(later: int) -> float:
    """What counts of the turns that came after: the fifth says no more than the fourth did."""
    return float(min(later, 5))


def features(passage: Passage) -> dict[str, float]:
    """What the model weighs; `length` in hundreds of characters."""
    text = passage.text
    return {
        "all": 1.0,
        "length": len(text) / 100,
        "why": float(_WHY.search(text) is not None),
        "code": float("`" in text),
        "self": float(_SELF.search(text) is not None),
        "leads on": float(passage.leads_on),
        "place": passage.place,
        "later": _turns(passage.later),
    }


def passages_in(answer: str) -> tuple[Passage, ...]:
    """The passages of an answer, in order."""
    units = [(under, unit) for under, unit in _units(answer) if unit]
    return tuple(
        Passage(_joined_up(unit), unit[-1].endswith(":"), number / len(units), under)
        for number, (under, unit) in enumerate(units)
    )


def _units(answer: str) -> Iterator[tuple[str, list[str]]]:
    """The sentences of an answer that belong together: a point of a list with what stands further in below it, a short
    list with the line that names what it is of, and of a paragraph each sentence with those that lean on it. Before
    each, what it stands under."""
    heading, head, points, depth = "", list[str](), list[list[str]](), 0
    for line in (_FENCED.sub("\n", answer) if "```" in answer else answer).splitlines():
        if not line.strip():
            continue
        said = [each.replace("**", "") for each in sentences(line)]
        indented = len(line) - len(line.lstrip())
        if _POINT.match(line.lstrip()):
            if points and indented > depth:
                points[-1] += said
            else:
                points.append(said)
                depth = indented
            continue
        yield from _with_list(heading, head, points)
        head, points = list[str](), list[list[str]]()
        if (title := _HEADING.fullmatch(line)) and len(line) <= LONGEST_HEADING and not line.rstrip("* ").endswith(":"):
            heading = _names_subject(title["text"] or title["bold"])
            continue
        for each in said:
            if head and not (_LABELLED.match(line) or _LEANS_ON.match(each)):
                yield heading, head
                head = []
            head.append(each)
    yield from _with_list(heading, head, points)


def _with_list(heading: str, head: list[str], points: list[list[str]]) -> Iterator[tuple[str, list[str]]]:
    """A list with the line before it, where that names what it is of and both are short; else each by itself, a point
    under that line."""
    whole = [*head, *(each for point in points for each in point)]
    if head and head[-1].endswith(":") and _NAMED.search(head[-1]) and sum(map(len, whole)) < LONGEST:
        yield heading, whole
        return
    yield heading, head
    lead = _names_subject(head[-1]) if head and head[-1].endswith(":") else ""
    yield from ((lead or heading, point) for point in points)


def _names_subject(heading: str) -> str:
    """A heading without its marks; empty where it is a word alone, which names no subject, or no heading."""
    said = " ".join(heading.replace("**", "").split()).strip("#:. ")
    return said if len(said) <= LONGEST_HEADING and " " in said else ""


def _joined_up(unit: list[str]) -> str:
    """The sentences of a unit on one line, as many as are whole."""
    said = ""
    for each in unit:
        if said and len(said) + len(each) >= LONGEST:
            break
        said = f"{said} {each}" if not said or said[-1] in ".:!?" else f"{said}; {each}"
    return one_line(said.strip(), LONGEST).rstrip(":")
