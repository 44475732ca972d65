"""Bug patterns: errors by signature, and what resolved them."""

import msgspec

from memctl.domain.failures.explanations import is_of, why_of
from memctl.domain.failures.matching import Shape
from memctl.domain.failures.signatures import says_little
from memctl.domain.failures.solutions import Detail, Solution, only_of, solutions_of
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
        return self.resolve_us_total // self.timed if self.timed else None

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
        return self.solutions_for(self.message)

    def solutions_for(self, message: str) -> tuple[Solution, ...]:
        """The same, where it says this: another call is the way out of the message alone that it was made for."""
        if self._is_vague:
            return ()
        conditions = tuple(f"{name} files" for name in sorted(names(self.file_types)[:3]))
        conditions += tuple(sorted(names(self.frameworks)[:3]))
        foreign, only = self._foreign(message), only_of(message)
        details = (msgspec.structs.replace(d, explanation="") if d.id in foreign else d for d in self.details)
        attempts = (
            msgspec.structs.replace(a, approach=a.approach.removeprefix(f"{why_of(foreign[a.id].explanation)}: "))
            if a.id in foreign
            else a
            for a in self.attempts
            if a.only in ("", only)
        )
        return solutions_of(tuple(attempts), tuple(details), self.refuted, conditions)

    @property
    def _is_vague(self) -> bool:
        """Whether all that is known is that something failed: what ended it once was of that once."""
        vague = self.error_types == ("exit",) or (says_little(self.template) and not self.frames)
        return self.example is not None and vague

    @property
    def own_causes(self) -> list[str]:
        """What was said to be behind it, without what is of another example."""
        foreign = {detail.at for detail in self._foreign(self.message).values()}
        return [cause.name for cause in self.causes if cause.at not in foreign]

    def _foreign(self, message: str) -> dict[str, Detail]:
        """By attempt what was said of another example, and names what this one does not."""
        return {d.id: d for d in self.details if not is_of(d.explanation, d.message, message)}


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
