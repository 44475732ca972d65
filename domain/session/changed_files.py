"""What a session changed: each file once, and of documents the sections, the newest text of each."""

from collections.abc import Mapping, Sequence
from typing import Any

from memctl.domain.events.fact_builder import FactBuilder
from memctl.domain.events.facts import FileTouched, SectionWritten
from memctl.domain.language.documents import files_named, is_document, sections_of
from memctl.domain.session.tool_uses import Use
from memctl.domain.session.tools import Change, patch_parts, patch_text
from memctl.domain.support.bounded import clipped
from memctl.domain.support.location import file_of

MOST_FILES, MOST_SECTIONS = 60, 80
"""Of one session: a generated site has thousands."""

_NEW = ("content", "file_text", "new_string", "new_str", "newString", "insert_text")
"""Fields of an edit that hold the new text."""


class ChangedFiles:
    """The state of one stream."""

    def __init__(self, assertions: FactBuilder) -> None:
        self._assert = assertions
        self._files: set[str] = set()
        self._seen: dict[str, str] = {}
        """Each section's text, by what it is about."""

    def changed(self, use: Use, changes: Sequence[Change], given: Mapping[str, Any]) -> None:
        """Files were changed; of the documents among them, what was put in."""
        for change in changes:
            path = file_of(change.path, self._assert.location)
            if path not in self._files and len(self._files) < MOST_FILES:
                self._files.add(path)
                self._assert.make(FileTouched, use.came, path, use.quote(change.path), path=path)
            if not is_document(change.path):
                continue
            path = clipped(path, 300)
            for section in sections_of(_put_in(change.path, given)):
                about = f"{path}\n{section.heading}"
                if self._seen.get(about) == section.text or (
                    about not in self._seen and len(self._seen) >= MOST_SECTIONS
                ):
                    continue
                self._seen[about] = section.text
                first = section.text.split("\n", 1)[0]
                self._assert.make(
                    SectionWritten, use.came, about, use.quote(section.text, first), path=path,
                    heading=section.heading, text=section.text, names=files_named(section.text),
                )  # fmt: skip


def _put_in(path: str, given: Mapping[str, Any]) -> str:
    """All of a document where it was written, else what is new in it."""
    if added := patch_parts(patch_text(given)).get(path):
        return "\n".join(line[1:] for line in added.split("\n") if line.startswith("+"))
    edits = given.get("edits")
    pairs = [given, *(each for each in edits[:50] if isinstance(each, dict))] if isinstance(edits, list) else [given]
    return "\n\n".join(text for pair in pairs for name in _NEW if isinstance(text := pair.get(name), str))
