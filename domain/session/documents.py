"""What a session wrote down in prose: the sections of its documents, the newest text of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memctl.domain.code.entities import file_of
from memctl.domain.events.fact_builder import FactBuilder
from memctl.domain.events.facts import SectionWritten
from memctl.domain.language.documents import files_named, is_document, sections_of
from memctl.domain.session.tool_uses import Use
from memctl.domain.session.tools import Change, patch_parts, patch_text
from memctl.domain.support.bounded import clipped

MOST = 80
"""Sections of one session: a generated site has thousands."""

_NEW = ("content", "file_text", "new_string", "new_str", "newString", "insert_text")
"""Fields of an edit that hold the new text."""


class Documents:
    """The state of one stream."""

    def __init__(self, assertions: FactBuilder) -> None:
        self._assert = assertions
        self._seen: dict[str, str] = {}
        """Each section's text, by what it is about."""

    def changed(self, use: Use, changes: Sequence[Change], given: Mapping[str, Any]) -> None:
        """Files were changed; of the documents among them, what was put in."""
        for change in changes:
            if not is_document(change.path):
                continue
            path = clipped(file_of(change.path, self._assert.location), 300)
            for section in sections_of(_put_in(change.path, given)):
                about = f"{path}\n{section.heading}"
                if self._seen.get(about) == section.text or (about not in self._seen and len(self._seen) >= MOST):
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
