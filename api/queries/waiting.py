"""What waits for a person: nothing else lets it through."""

from memctl.api.queries import claims
from memctl.api.queries import memories as queries
from memctl.api.reading import models
from memctl.api.reading.caller import OWNER
from memctl.api.reading.evidence import with_evidence
from memctl.api.reading.pages import LONGEST_PAGE, Keyed, Where, page
from memctl.api.reading.places import EVERYWHERE, Places, places_of
from memctl.api.reading.questions import Limit, question
from memctl.api.reading.reader import Reader, reader_of
from memctl.api.reading.records import ForgetRequestItem, InsightItem, Waiting
from memctl.api.reading.views import shown_as
from memctl.domain.support.provenance import by_actor, through, words_of
from memctl.infra.log.spaces import at_home
from memctl.infra.settings import Settings

TEXT = 300


@question("/waiting", "claims", whole=True)
def waiting(reader: Reader, places: Places, *, limit: Limit = 50) -> Waiting:
    """Claims that act or that agents or another memory made, what agents wrote into core memory, and what they ask to
    have forgotten, the newest first."""
    p = models.candidates
    conditions = Where(p).within(places, or_everywhere=True).equal("waits", True)
    found, _ = page(reader, p, "last_seen", conditions, limit=limit, cursor=None)
    rows = [Keyed(keyed.key, keyed.row.insight) for keyed in found if keyed.row.insight is not None]
    sections = [each for each in claims.core_memory(reader, places) if not each.confirmed]
    return Waiting(
        claims=with_evidence(reader, rows, InsightItem), sections=sections, requests=_requests(reader, limit)
    )


def claims_waiting(settings: Settings) -> int:
    """How many claims wait anywhere, up to the longest page. Raises: DatabaseUnavailable."""
    with at_home(settings, "memctl waiting") as (connection, _):
        reader = reader_of(connection, settings.space, OWNER)
        return len(waiting(reader, places_of(reader, EVERYWHERE), limit=LONGEST_PAGE).claims)


def _requests(reader: Reader, limit: int) -> list[ForgetRequestItem]:
    p = models.forget_requests
    found, _ = page(reader, p, "asked_at", Where(p).equal("waits", True), limit=limit, cursor=None)
    items = []
    for keyed in found:
        try:
            thing = queries.thing(reader, keyed.key).item
        except queries.NotFound:
            continue  # it is gone
        by = keyed.row.by
        origin = words_of(by_actor(by), member=through(by), asking=reader.member)
        items.append(shown_as(keyed.row, ForgetRequestItem, text=queries.called(thing)[:TEXT], origin=origin))
    return items
