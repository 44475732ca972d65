"""What the work of one session shows of its code and surroundings: rules of replacement, transformations, entities,
files that belong together. Each is asserted once, where it first shows, so no fact of these is ever revised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from memctl.domain.code.edits import (
    Block,
    Replacement,
    Transformation,
    annotated,
    blocks_of_hunks,
    blocks_of_lines,
    blocks_of_texts,
    body_of,
    calls_in,
    functions_in,
    language_of,
    replacements_in,
    top_level_in,
    transformation_of,
)
from memctl.domain.code.entities import file_of
from memctl.domain.code.mentions import (
    HEAD,
    MANIFESTS,
    Named,
    libraries_declared,
    libraries_in_code,
    libraries_installed,
    people_in,
    services_in,
)
from memctl.domain.events.fact_builder import FactBuilder
from memctl.domain.events.facts import CodeReplaced, CodeTransformed, EntityMentioned, FilesCommitted, FileTouched
from memctl.domain.events.observations import Hunk
from memctl.domain.session.tool_uses import Use
from memctl.domain.session.tools import Change, patch_parts, patch_text
from memctl.domain.support.bounded import clipped

MOST_FACTS = 60
"""Facts of one kind that a session asserts at most: what comes after repeats itself, or is generated."""

TOGETHER = 8
"""Files of one commit that are recorded; commits of more than twice as many tie nothing together."""

_SHARED_LINES = 2
"""Lines that code and a function must share before the one counts as moved into the other."""

_LINE = 160


class CodeEdits:
    """The state of one stream."""

    def __init__(self, assertions: FactBuilder) -> None:
        self._assert = assertions
        self._seen: set[tuple[str, ...]] = set()
        self._asserted: Counter[str] = Counter()
        self._files: set[str] = set()
        self._functions: dict[str, frozenset[str]] = {}
        """Functions that were written in this session, by name, with the lines of their code."""
        self._gone: dict[str, str] = {}
        """Definitions that were taken out of a file, and have not turned up elsewhere."""
        self._came: dict[str, str] = {}
        self._changed: Counter[str] = Counter()
        """Files changed since the last commit, with how often."""

    # --- what was changed ---

    def changed(
        self, use: Use, changes: Sequence[Change], given: Mapping[str, Any], patch: Sequence[Hunk], *, asked: bool
    ) -> None:
        """Files were changed: by a patch the client shows, a patch the agent wrote, or one text for another."""
        parts = {} if patch else patch_parts(patch_text(given))
        for change in changes:
            path = file_of(change.path, self._assert.location)
            self._changed[path] += 1
            if self._changed[path] == 1 and self._is_new("touched", path) and self._has_room("touched"):
                self._assert.make(FileTouched, use.came, path, use.quote(change.path), path=path)
            language = language_of(path)
            if language:
                if patch:
                    blocks = blocks_of_hunks(patch)
                elif change.path in parts:
                    blocks = blocks_of_lines(parts[change.path].split("\n"))
                else:
                    blocks = blocks_of_texts(change.before, change.after)
                self._rewritten(use, path, language, blocks, asked=asked)
            self._names(use, path, language, change.after)

    def _rewritten(self, use: Use, path: str, language: str, blocks: Sequence[Block], *, asked: bool) -> None:
        transformed = list(self._moved(path, blocks))
        replaced: list[tuple[Replacement, int]] = []
        if any(block.removed for block in blocks):
            replaced = self._replaced(language, blocks, transformed)
            transformed += self._extracted(blocks)
            if language == "python" and (made := annotated(blocks)):
                transformed.append(made)
        for made in {each.variant: each for each in transformed}.values():
            if self._is_new("transformed", made.variant, path) and self._has_room("transformed"):
                self._assert.make(
                    CodeTransformed,
                    use.came,
                    f"{path}:{made.variant}",
                    use.quote(made.after, made.before),
                    path=path,
                    language=language,
                    variant=made.variant,
                    before=clipped(made.before, _LINE),
                    after=clipped(made.after, _LINE),
                )
        for each, places in replaced:
            if self._is_new("replaced", each.before, each.after, path) and self._has_room("replaced"):
                self._assert.make(
                    CodeReplaced,
                    use.came,
                    f"{path}\n{each.before}\n{each.after}",
                    use.quote(each.line[1].strip(), each.line[0].strip()),
                    path=path,
                    language=language,
                    before=each.before,
                    after=each.after,
                    variables=each.variables,
                    line_before=clipped(each.line[0], _LINE),
                    line_after=clipped(each.line[1], _LINE),
                    places=places,
                    asked=asked,
                )

    def _replaced(
        self, language: str, blocks: Sequence[Block], transformed: list[Transformation]
    ) -> list[tuple[Replacement, int]]:
        """Replacements with how many lines have them; the transformations that they are go into `transformed`."""
        groups: dict[tuple[str, str], list[Replacement]] = {}
        for each in replacements_in(blocks):
            groups.setdefault((each.before, each.after), []).append(each)
        found = []
        for places in groups.values():
            first = places[0]
            # One name for another in one line, which declares neither, is another variable and no new name.
            if len(places) < 2 and first.is_name and not first.declares:
                continue
            made = transformation_of(first, language)
            if made is not None:
                transformed.append(made)
            found.append((first, len(places)))
        return found

    def _extracted(self, blocks: Sequence[Block]) -> list[Transformation]:
        """Code that gave way to a call of a function which holds it now."""
        for block in blocks:
            written = functions_in("\n".join(block.added))
            body = body_of(block.added) if written else frozenset()
            for name in written:
                if len(self._functions) < 100:
                    self._functions.setdefault(name, body)
        found = []
        for block in blocks:
            if len(block.removed) < 3 or len(block.added) >= len(block.removed) or not self._functions:
                continue
            body = body_of(block.removed)
            for name, lines in self._functions.items():
                if len(body & lines) >= _SHARED_LINES and (call := calls_in(block.added, name)):
                    before = next(line.strip() for line in block.removed if line.strip() in lines)
                    found.append(Transformation("extract_method", "code to function", before, call))
                    break
        return found

    def _moved(self, path: str, blocks: Sequence[Block]) -> list[Transformation]:
        """Definitions that left one file and stand in another."""
        gone = top_level_in("\n".join(line for block in blocks for line in block.removed))
        came = top_level_in("\n".join(line for block in blocks for line in block.added))
        found = []
        for names, here, there in ((came - gone, self._came, self._gone), (gone - came, self._gone, self._came)):
            for name in sorted(names):
                other = there.pop(name, path)
                if other != path:
                    source, target = (other, path) if here is self._came else (path, other)
                    found.append(Transformation("restructure", "moved to another file", f"{name} in {source}", target))
                elif len(here) < 200:
                    here[name] = path
        return found

    # --- what was named ---

    def read(self, use: Use, path: str, text: str) -> None:
        """A file's text was shown."""
        path = file_of(path, self._assert.location)
        if path not in self._files and len(self._files) < 2_000:
            self._files.add(path)
            self._names(use, path, language_of(path), text)

    def _names(self, use: Use, path: str, language: str, text: str) -> None:
        location = self._assert.location
        named: list[Named] = []
        if language:
            named = libraries_in_code(language, text[:HEAD], location)
        elif path.rpartition("/")[2] in MANIFESTS:
            named = libraries_declared(path, text, location)
        if named:
            self._mention(use, named, path)

    def ran(self, use: Use, command: str, output: str, *, committed: bool) -> None:
        """A command ended well."""
        named = libraries_installed(command, self._assert.location) + services_in(command) + people_in(command, output)
        if named:
            self._mention(use, named, "")
        if committed and self._changed:
            self._commit(use)

    def _mention(self, use: Use, named: Sequence[Named], path: str) -> None:
        for each in named:
            if self._is_new("entity", each.kind, each.platform, each.name, each.version) and self._has_room("entity"):
                self._assert.make(
                    EntityMentioned,
                    use.came,
                    f"{each.kind}:{each.platform}:{each.name}@{each.version}",
                    use.quote(each.name, each.name.rpartition("/")[2]),
                    kind=each.kind,
                    platform=each.platform,
                    name=each.name,
                    how=each.how,
                    version=each.version,
                    path=path,
                )

    def _commit(self, use: Use) -> None:
        changed, self._changed = self._changed, Counter()
        if 2 <= len(changed) <= 2 * TOGETHER and self._has_room("committed"):
            ranked = sorted(changed.items(), key=lambda item: (-item[1], item[0]))
            paths = tuple(path for path, _ in ranked[:TOGETHER])
            self._assert.make(FilesCommitted, use.came, str(use.came.cite), use.quote("git commit"), paths=paths)

    def _is_new(self, *what: str) -> bool:
        if what in self._seen or len(self._seen) >= 2_000:
            return False
        self._seen.add(what)
        return True

    def _has_room(self, kind: str) -> bool:
        self._asserted[kind] += 1
        return self._asserted[kind] <= MOST_FACTS
