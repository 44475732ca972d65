"""Files as the staleness checker found them."""

import msgspec

from memctl.domain.events.file_checks import FileObserved, Look
from memctl.domain.support.bounded import NARROW, clipped, newest
from memctl.projections.kernel import Recorded, projection

KEPT = 16
"""Contents of one file that are kept, the newest."""


class ObservedFile(msgspec.Struct, frozen=True, kw_only=True):
    """The newest contents of a file, newest first."""

    path: str
    looks: tuple[Look, ...] = ()


@projection(row=ObservedFile, key=lambda item: clipped(item.payload.path, 400, NARROW))
def observed_files(row: ObservedFile | None, item: Recorded[FileObserved]) -> ObservedFile:
    """What was in files that memories are tied to, as it was found when it had changed."""
    row = row or ObservedFile(path=clipped(item.payload.path, 400, NARROW))
    look = Look(int(item.event.occurred_at), str(item.event.delivery_id), clipped(item.payload.blob, 64))
    return msgspec.structs.replace(row, looks=newest(row.looks, look, KEPT))
