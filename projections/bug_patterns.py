"""Bug patterns: errors by signature, and what resolved them."""

import msgspec

from memctl.domain.failures.matching import Shape
from memctl.domain.failures.solutions import Solution, solutions_of
from memctl.domain.support.bounded import names
from memctl.projections.bug_sightings import BugSightings, Sightings, together
from memctl.projections.kernel import Changed, projection


class BugPattern(Sightings, frozen=True, kw_only=True):
    """One kind of error, over all sessions; `solutions` groups its attempts. Times in microseconds."""

    error_types: tuple[str, ...] = ()
    """These four are those of the latest occurrence."""
    template: str = ""
    message: str = ""
    frames: tuple[str, ...] = ()

    @property
    def mean_resolve_us(self) -> int | None:
        """Mean time from the error to the run that passed; None before the first resolution."""
        return self.resolve_us_total // self.resolutions if self.resolutions else None

    @property
    def shape(self) -> Shape:
        """What a query error is compared with (`domain.failures.matching.match`)."""
        return Shape(
            signature=self.signature,
            error_types=self.error_types,
            template=self.template,
            frames=self.frames,
            file_types=names(self.file_types),
            frameworks=names(self.frameworks),
        )

    @property
    def solutions(self) -> tuple[Solution, ...]:
        """What resolved it, best first."""
        conditions = tuple(f"{name} files" for name in sorted(names(self.file_types)[:3]))
        conditions += tuple(sorted(names(self.frameworks)[:3]))
        return solutions_of(self.attempts, self.details, self.refuted, conditions)


@projection(
    row=BugPattern,
    key=lambda changed: changed.row.signature if changed.row is not None else None,
    indexes=(("last_seen",), ("occurrences", "last_seen"), ("resolutions", "last_seen")),
)
def bug_patterns(row: BugPattern | None, share: Changed[BugSightings]) -> BugPattern | None:
    """Errors by signature, across sessions, with what resolved them and how often that lasted."""
    seen = share.row
    if seen is None:
        return row
    row = row or BugPattern(signature=seen.signature, first_seen=seen.first_seen, last_seen=seen.last_seen)
    row = msgspec.structs.replace(row, **together(row, seen))
    latest = row.example
    if latest is None:
        return row
    return msgspec.structs.replace(
        row,
        error_types=latest.error_types,
        template=latest.template,
        message=latest.message,
        frames=latest.frames,
    )
