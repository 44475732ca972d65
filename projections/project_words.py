"""What people said about which places are one project: merged, or split again."""

import msgspec

from memctl.domain.projects.identity import Merging, ProjectMerged, ProjectSplit
from memctl.domain.support.bounded import NARROW, clipped, newest
from memctl.domain.support.location import LONGEST, bounded
from memctl.projections.kernel import Recorded, projection

MERGINGS = 16
"""How many words about one anchor a row keeps, newest first."""


class ProjectWords(msgspec.Struct, frozen=True, kw_only=True):
    """What was said of one anchor: a remote, or the path of a root. Times in microseconds, 0 for never.

    `into` are the projects that it was said to be of; `split_at` is when it was said to be one of its own.
    """

    anchor: str
    into: tuple[Merging, ...] = ()
    split_at: int = 0


Word = Recorded[ProjectMerged] | Recorded[ProjectSplit]


def _key(item: Word) -> str:
    payload = item.payload
    return bounded(payload.merged if isinstance(payload, ProjectMerged) else payload.part)


@projection(row=ProjectWords, key=_key)
def project_words(
    row: ProjectWords | None, item: Recorded[ProjectMerged] | Recorded[ProjectSplit]
) -> ProjectWords | None:
    """Which places people said to be one project, or not. It is the user's to say, in a project's stream."""
    if item.event.actor != "user" or not item.event.stream.startswith("project/"):
        return row
    row = row or ProjectWords(anchor=_key(item))
    payload, at = item.payload, int(item.event.occurred_at)
    if isinstance(payload, ProjectMerged):
        merging = Merging(at, str(item.event.delivery_id), clipped(payload.into, LONGEST, NARROW))
        return msgspec.structs.replace(row, into=newest(row.into, merging, MERGINGS))
    return msgspec.structs.replace(row, split_at=max(row.split_at, at))
