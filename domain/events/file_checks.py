"""Files as they were found: what the staleness checker saw of a file that memories are tied to."""

from collections.abc import Sequence

import msgspec

from memctl.domain.events.event import Payload, event


@event("file.observed")
class FileObserved(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """A file that memories are tied to was looked at, and is not what it was when it was looked at last.

    `blob` is the id that git gives its content (empty where the file is gone).
    """

    path: str
    blob: str = ""


class Look(msgspec.Struct, frozen=True, array_like=True):
    """A file's content at a moment (microseconds)."""

    at: int
    id: str
    blob: str


def changed_after(looks: Sequence[Look], learnt: int) -> int | None:
    """When a file was first seen to differ from what it was when something was learnt of it; None where it does not.

    `looks` newest first. The last look before shows what it was then, else the first one after: nobody saw what changed
    in between. A file that is back to what it was is what it was; one that is gone differs from anything,
    but from one that was gone before.
    """
    if not looks:
        return None
    before = next((look for look in looks if look.at <= learnt), looks[-1])
    later = [look for look in looks if (look.at, look.id) > (before.at, before.id)]
    now = looks[0].blob
    if not now and not later and before.at > learnt:
        return before.at  # gone at the first look
    if not later or now == before.blob:
        return None
    differing = next((look for look in reversed(later) if look.blob != before.blob), later[-1])
    return differing.at
