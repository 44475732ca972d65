"""Which claims about files are to be looked at again: the file has changed since the claim was last seen to hold."""

from collections.abc import Iterable, Sequence

from memctl.api.reading import models
from memctl.api.reading.pages import Where, select, several
from memctl.api.reading.reader import Reader
from memctl.domain.events.file_checks import changed_after
from memctl.domain.support.location import file_at, is_on_this_machine
from memctl.projections.memory_rows import Memory
from memctl.projections.observed_files import ObservedFile

CLAIMING = frozenset(("knowledge", "strategy"))
"""Kinds of memories that claim something of their files; the others say what happened to them."""

MOST_FILES = 64
"""Files that one question asks about."""


def changed_since(reader: Reader, files: Iterable[str], locations: Sequence[str] | None = None) -> dict[str, int]:
    """When each of those files was last changed in work that was seen, in microseconds; others are left out.

    A relative path means a file of that name under any of the locations (all, without them).
    """
    wanted = list(dict.fromkeys(files))[:MOST_FILES]
    if not wanted:
        return {}
    p = models.episodes
    found = select(
        reader,
        p,
        "SELECT w.path, max((row->>'ended_at')::bigint) FROM {rows},"
        " jsonb_array_elements(row->'patches') AS patch, unnest(%s::text[]) AS w(path)"
        " WHERE patch->>'path' = w.path OR right(patch->>'path', length(w.path) + 1) = '/' || w.path GROUP BY 1",
        wanted,
        conditions=() if locations is None else Where(p).one_of("location", locations),
    )
    return {path: int(at) for path, at in found if at is not None}


def stale(reader: Reader, memories: Iterable[Memory]) -> set[str]:
    """Ids of memories that claim something of files which have changed since they were last seen to hold: by work that
    was seen, or by what the staleness checker found in the files."""
    claims = [memory for memory in memories if memory.kind in CLAIMING and memory.files]
    changed = changed_since(reader, (path for memory in claims for path in memory.files))
    here = (memory for memory in claims if is_on_this_machine(memory.location))
    wholes = {(memory.id, path): file_at(memory.location, path) for memory in here for path in memory.files}
    looked: dict[str, ObservedFile] = several(reader, models.observed_files, list(wholes.values()))
    return {
        memory.id
        for memory in claims
        for path in memory.files
        if changed.get(path, 0) > memory.last_at
        or (
            (file := looked.get(wholes.get((memory.id, path), "")))
            and changed_after(file.looks, memory.last_at) is not None
        )
    }
