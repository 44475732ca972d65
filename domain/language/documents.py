"""Documents that agents write for those who come later: memory files, skills, guides, designs. What a memory holds of
one is a section of it, for a whole document is about too much to be found by any of it. What is written for the moment
is none: plans, scratchpads, lists of what is to be done, templates."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from memctl.domain.knowledge.memory import plain_sentences
from memctl.domain.support import patterns
from memctl.domain.support.bounded import clipped, one_line
from memctl.domain.support.remembered import remembered

LONGEST, SECTION, SHORTEST, MOST_SECTIONS = 60_000, 1_800, 80, 40
"""Characters of a document that are read, of a section's text, and those below which a section says nothing by itself;
sections of one document."""

HEADING, MOST_NAMES = 120, 12
"""Characters of a heading, and files that a text names."""

_A_LINE = 12
"""Characters of a line that is known again: shorter ones stand anywhere."""

_ENDINGS = (".md", ".mdx", ".markdown", ".rst", ".adoc")
_OF_RELEASES = ("changelog", "license", "changes", "history", "releases")
"""Documents that say of everything a little: what was done stands in the episodes already."""

_HEADING_OR_FENCE = patterns.compile(r"^(?:[ \t]*(?:```|~~~)|(#{1,4})[ \t]+(\S[^\n]*)$)", patterns.M)
_CHECKBOX = patterns.compile(r"^[ \t]*[-*][ \t]+\[[ xX]\][ \t]+", patterns.M)
_NAME = patterns.compile(r"[a-z0-9]+")
_PASSING_WORDS = """
plan plans planning todo todos draft drafts scratch scratchpad tmp temp template templates prompt prompts
"""
_PASSING = frozenset(_PASSING_WORDS.split())
"""What folders, and words of a file's name, say that it will not stay, or is text for something else."""

_EXAMPLE = patterns.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*(?:markdown|mdx?)\b", patterns.I)
"""What opens a block that shows a document, and is none of what the document around it says."""

_LINE_OF_LIST = patterns.compile(r"[ \t]*(?:[-*•]|\d+[.)])[ \t]")
_FEW_WORDS = 10
"""Plain words that a text has at least which says something."""
_FILE = patterns.compile(r"[\w@~./+-]*[\w+-]\.[A-Za-z][A-Za-z0-9]{0,4}\b")
_NO_FILES = ("e.g", "i.e", "etc.", "www.", "http")


class Section(NamedTuple):
    """A part of a document under one heading, which is empty where the part has none."""

    heading: str
    text: str


def is_document(path: str) -> bool:
    """Whether a file is prose that somebody wrote to be read, and that stays."""
    *folders, name = path.replace("\\", "/").lower().split("/")
    if not name.endswith(_ENDINGS) or name.startswith(_OF_RELEASES):
        return False
    return _PASSING.isdisjoint((*(each.strip("._") for each in folders), *_NAME.findall(name)))


def sections_of(text: str, *, part: bool = False) -> Iterator[Section]:
    """The sections that say something, each with the title it stands under; at most `MOST_SECTIONS`. Of a `part` of a
    document, what stands under no heading may begin or end within a sentence: then it is none."""
    title, found = "", 0
    for level, heading, body in _parts(_without_examples(text[:LONGEST])):
        if heading and (not title or level == 1):
            title = heading
        said = body.strip()
        if _stays(said) and (heading or (_says_something(said) and (not part or _is_whole(said)))):
            under = f"{title}: {heading}" if heading != title else title
            yield Section(one_line(under, HEADING), clipped(said, SECTION))
            found += 1
            if found == MOST_SECTIONS:
                return


def _stays(text: str) -> bool:
    """Whether it is long enough, and no list of what is to be done."""
    return len(text) >= SHORTEST and not _CHECKBOX.search(text)


def _says_something(text: str) -> bool:
    """Whether it does so in words of its own, beside code, tables and addresses."""
    words = (word.strip(".,:;`*()[]") for sentence in plain_sentences(text) for word in sentence.split())
    return sum(1 for _ in islice((word for word in words if word.isalpha()), _FEW_WORDS)) == _FEW_WORDS


def _is_whole(text: str) -> bool:
    """Whether a text neither begins nor ends within a sentence."""
    last = text[text.rfind("\n") + 1 :]
    ends = text.endswith((".", "!", "?", ":", "。", ")", "|", "`")) or _LINE_OF_LIST.match(last) is not None
    return ends and not text[0].islower()


def _without_examples(text: str) -> str:
    kept: list[str] = []
    fence = ""
    for line in text.split("\n"):
        if fence:
            fence = "" if line.strip() == fence else fence
        elif ("```" in line or "~~~" in line) and (opens := _EXAMPLE.match(line)):
            fence = opens[1]
        else:
            kept.append(line)
    return "\n".join(kept)


def edited(texts: Mapping[str, str], old: str, new: str, written: Collection[str] = ()) -> dict[str, str]:
    """Those of a document's sections that an edit changed; empty where hardly anything is left of one. Of sections that
    hold the same line it is the one that was `written` by the edit, else the one that lost most."""
    held = sorted((id for id in texts if old.strip() and old in texts[id]), key=lambda id: id not in written)
    left: dict[str, str] = {}
    if held and "\n#" not in f"\n{new}":
        left[held[0]] = texts[held[0]].replace(old, new, 1)
    else:
        # What was put in with a heading is a section of its own.
        gone = _lines(old) - _lines(new)
        lost = {id: gone & _lines(text) for id, text in texts.items()} if gone else {}
        for id in sorted(lost, key=lambda id: (id not in written, -len(lost[id]))):
            if lines := lost[id] & gone:
                gone -= lines
                left[id] = "\n".join(line for line in texts[id].split("\n") if line.strip() not in lines)
    return {
        id: clipped(text.strip(), SECTION) if _stays(text.strip()) else ""
        for id, text in left.items()
        if id not in written
    }


@remembered(256)
def _lines(text: str) -> frozenset[str]:
    """The lines of a section, which is held against each change of its document."""
    return frozenset(line.strip() for line in text[:LONGEST].split("\n") if len(line.strip()) >= _A_LINE)


def _parts(text: str) -> Iterator[tuple[int, str, str]]:
    """Level and words of each heading, with what stands between it and the next. What a fence holds is no heading."""
    level, heading, start, fenced = 0, "", 0, False
    for match in _HEADING_OR_FENCE.finditer(text):
        if match[1] is None:
            fenced = not fenced
        elif not fenced:
            yield level, heading, text[start : match.start()]
            level, heading, start = len(match[1]), match[2], match.end()
    yield level, heading, text[start:]


def named(path: str) -> str:
    """A file as people name it, wherever the checkout lies: with the folder that it lies in."""
    return "/".join(path.replace("\\", "/").rstrip("/").split("/")[-2:])


def files_named(text: str) -> tuple[str, ...]:
    """The files that a text names, as it names them: the first dozen."""
    found: dict[str, None] = {}
    for match in _FILE.finditer(text[:LONGEST]):
        name = match[0].removeprefix("./")
        if "/" in name or len(name) > 4:
            found.setdefault(name)
            if len(found) == MOST_NAMES:
                break
    return tuple(each for each in found if not each.lower().startswith(_NO_FILES))
