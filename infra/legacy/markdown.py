"""Notes that other memories keep as Markdown: Claude Code's memory folders, and basic-memory's.

A note is a section of a file: the words below one heading. An index, and lines that only lead to other files, say
nothing of their own.
"""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from memctl.domain.support.location import normalise
from memctl.infra.files import read_file
from memctl.infra.legacy.rows import Row
from memctl.infra.transcripts.fields import mapping, string
from memctl.infra.transcripts.files import kept_by_a_client

LARGEST_FILE = 256 << 10
"""Bytes of a file of notes."""

MOST_FILES = 5_000
"""Files of a folder that are read."""

_HEAD, _LOOKED_AT = 64 << 10, 20
"""Bytes of a transcript in which its directory is looked for, and files that are looked at."""


def is_of_claude(folder: Path) -> bool:
    """Whether Claude Code keeps its notes on a project in a folder: `projects/PROJECT/memory`."""
    return folder.name == "memory" and folder.parent.parent.name == "projects"


def is_of_basic_memory(folder: Path) -> bool:
    """Whether basic-memory wrote one of the first files of a folder."""
    return any(_by_basic_memory(_read(path)[0]) for path in islice(_files(folder), _LOOKED_AT))


def notes_in(folder: Path) -> Iterator[Row]:
    """The sections of a folder's files: text, title, type, tags, when the file was written; of Claude Code's, what it
    calls the project, and the project's directory where the user's own client says it: elsewhere anybody may have."""
    claude = is_of_claude(folder)
    place = _place_of(folder.parent) if claude and kept_by_a_client(folder) else ""
    of = {"project": folder.parent.name, "place": place} if claude else {}
    number = 0
    for path in islice(_files(folder), MOST_FILES):
        head, body = _read(path)
        if len(body) > LARGEST_FILE:
            number += 1
            yield Row(number, "", {}, f"{path.name} is longer than {LARGEST_FILE >> 10} KB")
        elif claude or _by_basic_memory(head):
            about = {name: head.get(name, "") for name in ("type", "tags")}
            at = int(path.stat().st_mtime)
            for heading, text in _sections(body):
                number += 1
                title = " / ".join(dict.fromkeys(filter(None, (head.get("title", ""), heading))))
                fields = {"text": text, "title": title, "at": at, **about, **of}
                yield Row(number, "markdown_notes", fields)


def _files(folder: Path) -> Iterator[Path]:
    """Its Markdown, in order. A link may lead to what is no note."""
    return (path for path in sorted(folder.rglob("*.md")) if path.is_file() and not path.is_symlink())


def _read(path: Path) -> tuple[dict[str, str], str]:
    """A file's head, a line a field, and what it says below; both empty where it cannot be read."""
    try:
        text = read_file(path, LARGEST_FILE + 1).decode("utf-8-sig", "replace").replace("\r\n", "\n")
    except OSError:
        return {}, ""
    if not text.startswith("---\n"):
        return {}, text
    head, _, body = text.removeprefix("---\n").partition("\n---")
    fields = (line.partition(":")[::2] for line in head.splitlines())
    return {name.strip(): value.strip().strip("[]\"'") for name, value in fields}, body.partition("\n")[2]


def _by_basic_memory(head: dict[str, str]) -> bool:
    return "permalink" in head or ("title" in head and "type" in head)


def _sections(body: str) -> Iterator[tuple[str, str]]:
    heading, fenced = "", False
    lines: list[str] = []
    for line in [*body.splitlines(), "#"]:
        fenced ^= line.startswith("```")
        if line.startswith("#") and not fenced:
            if text := "\n".join(lines).strip():
                yield heading, text
            heading, lines = line.lstrip("#").strip(), []
        elif fenced or not _leads_on(line.strip()):
            lines.append(line)
    if text := "\n".join(lines).strip():  # a fence that nobody closed
        yield heading, text.removesuffix("#").strip()


def _leads_on(line: str) -> bool:
    """Whether a line of a list only names another file."""
    return line[:2] in ("- ", "* ") and (line.endswith("]]") or (line[2:].startswith("[") and "](" in line))


def _place_of(project: Path) -> str:
    """The directory that a project's folder is named for, as the transcripts in it say; empty where none does. Whatever
    is no letter and no digit is a dash in the folder's name."""
    for path in islice((each for each in sorted(project.glob("*.jsonl")) if not each.is_symlink()), _LOOKED_AT):
        for line in _lines(path):
            cwd, length = normalise(line), len(project.name)
            place = cwd[:length]
            ends = cwd[length : length + 1] in ("", "/") or place.endswith("/")
            if ends and "".join(each if each.isascii() and each.isalnum() else "-" for each in place) == project.name:
                return place
    return ""


def _lines(path: Path) -> Iterator[str]:
    """The directories that the first lines of a transcript name."""
    try:
        lines = read_file(path, _HEAD).splitlines()
    except OSError:
        return
    for line in lines:
        try:
            if cwd := string(mapping(json.loads(line)).get("cwd")):
                yield cwd
        except (ValueError, RecursionError):
            continue
