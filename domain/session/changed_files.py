"""What a session changed: each file once, and of documents the sections, the newest text of each."""

from collections.abc import Mapping, Sequence
from typing import Any

from memctl.domain.events.fact_builder import FactBuilder
from memctl.domain.events.facts import FileTouched, SectionWritten
from memctl.domain.language.documents import Section, edited, files_named, is_document, sections_of
from memctl.domain.session.tool_uses import Use
from memctl.domain.session.tools import Change, patch_parts, patch_text
from memctl.domain.support.bounded import clipped
from memctl.domain.support.location import file_of
from memctl.domain.support.mentions import path_within

MOST_FILES, MOST_SECTIONS = 60, 80
"""Of one session: a generated site has thousands."""

_WHOLE = ("content", "file_text")
_NEW = ("new_string", "new_str", "newString", "insert_text")
_OLD = ("old_string", "old_str", "oldString")
"""Fields that hold all of a document, and what an edit puts in and takes out."""


class ChangedFiles:
    """The state of one stream."""

    def __init__(self, assertions: FactBuilder) -> None:
        self._assert = assertions
        self._files: set[str] = set()
        self._seen: dict[str, Section] = {}
        """Each section as it reads now, by what it is about."""

    def changed(self, use: Use, changes: Sequence[Change], given: Mapping[str, Any]) -> None:
        """Files were changed; of the documents among them, what was put in."""
        parts = patch_parts(patch_text(given))
        for named in dict.fromkeys(change.path for change in changes):  # a patch may name one file many times
            path = file_of(named, self._assert.directory)
            if path not in self._files and len(self._files) < MOST_FILES:
                self._files.add(path)
                self._assert.make(FileTouched, use.came, path, use.quote(named), path=path)
            if not is_document(path_within(self._assert.location, path) or path):
                continue
            path = clipped(path, 300)
            before, after, whole = _sides(parts.get(named), given)
            sections = {f"{path}\n{each.heading}": each for each in sections_of(after, part=not whole)}
            seen = {about: each.text for about, each in self._seen.items() if about.startswith(f"{path}\n")}
            left = dict.fromkeys(seen.keys() - sections, "") if whole else edited(seen, before, after, sections)
            for about in sorted(left):
                self._write(use, path, about, Section(self._seen[about].heading, left[about]))
            for about, section in sections.items():
                if about in self._seen or len(self._seen) < MOST_SECTIONS:
                    self._write(use, path, about, section)

    def _write(self, use: Use, path: str, about: str, section: Section) -> None:
        """A section reads like this now; nothing of it is left where it has no text."""
        if self._seen.get(about) == section:
            return
        self._seen[about] = section
        first = section.text.split("\n", 1)[0]
        self._assert.make(
            SectionWritten, use.came, about, use.quote(section.text, first), path=path,
            heading=section.heading, text=section.text, names=files_named(section.text),
        )  # fmt: skip


def _sides(part: str | None, given: Mapping[str, Any]) -> tuple[str, str, bool]:
    """What an edit, or a `part` of a patch, takes out of a document and puts in; and whether that is all of it."""
    if part:
        lines = part.split("\n")
        out, put = ("\n".join(line[1:] for line in lines if line.startswith(sign)) for sign in "-+")
        return out, put, False
    edits = given.get("edits")
    pairs = [given, *(each for each in edits[:50] if isinstance(each, dict))] if isinstance(edits, list) else [given]
    out, put = (
        "\n\n".join(text for pair in pairs for name in names if isinstance(text := pair.get(name), str))
        for names in (_OLD, (*_WHOLE, *_NEW))
    )
    return out, put, any(isinstance(given.get(name), str) for name in _WHOLE)
