"""Commands through the API's own doors: carried out once, refused whole, and folded into what is known."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from doors import Door, door_to
from events import NOON, observed

from memctl.api.queries import claims, work
from memctl.api.queries import memories as queries
from memctl.api.queries.context import NoSession, context
from memctl.api.queries.explain import explain
from memctl.api.reading.evidence import broken_quotes
from memctl.api.reading.places import Places
from memctl.api.write.command_handler import BadKey, UnknownCommand
from memctl.domain.events.command import BadCommand, KeyReused
from memctl.domain.events.core_memory import SectionChanged
from memctl.domain.events.observations import NoticeReceived, PromptSubmitted, ToolCalled, ToolReturned
from memctl.domain.session.work_commands import NothingOpen
from memctl.infra.log.append import append

EVERYWHERE = Places(None, "everywhere", None)


@pytest.fixture(scope="module")
def door(postgres_server: str, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    data = tmp_path_factory.mktemp("data")
    with door_to(postgres_server, migrated_template, data, location="/home/dev/shop") as door:
        yield door


def test_a_command_is_carried_out_once_however_often_and_by_however_many_it_is_sent(door: Door) -> None:
    before = door.count()
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(door.say, "note", "once", text="Releases are cut on Fridays") for _ in range(4)]
        done = [each.result() for each in asked]
    assert sorted(each.status for each in done) == ["duplicate", "duplicate", "duplicate", "new"]
    assert len({each.event_id for each in done}) == 1
    assert door.count() == before + 1


def test_another_command_under_the_same_key_is_refused_and_nothing_is_kept(door: Door) -> None:
    door.say("note", "reused", text="The port is 8080 in development")
    before = door.count()
    with pytest.raises(KeyReused):
        door.say("note", "reused", text="The port is 9090 in development")
    assert door.count() == before


def test_a_command_sent_again_is_known_whatever_its_names_mean_by_then(door: Door) -> None:
    first, second, third = places = ("/srv/quay", "/srv/lock", "/srv/weir")
    door.say("note", text="The quay lies behind the lock")
    append(door.connection, 1, [observed(PromptSubmitted(line=at, text="go on"), at=0, location=at) for at in places])
    door.known()
    one = door.say("merge-projects", "one", into=second, project=first)
    other = door.say("merge-projects", "other", into=third, project="lock")
    append(door.connection, 1, [observed(PromptSubmitted(line="m", text="go on"), at=0, location="/opt/lock")])
    door.known()
    before = door.count()
    again = door.say("merge-projects", "one", into=second, project=first)  # that is of the third by now
    assert (again.status, again.event_id, again.recorded) == ("duplicate", one.event_id, one.recorded)
    again = door.say("merge-projects", "other", into=third, project="lock")  # of which there are two
    assert (again.status, again.event_id, again.recorded) == ("duplicate", other.event_id, other.recorded)
    with pytest.raises(KeyReused):
        door.say("merge-projects", "one", into=second, project="/opt/lock")
    for place in (first, second):
        door.say("split-project", place, project=place)
    door.known()
    door.say("merge-projects", "back", into=first, project=second)
    door.known()
    again = door.say("merge-projects", "one", into=second, project=first)  # which would be into itself by now
    assert (again.status, again.event_id, again.recorded) == ("duplicate", one.event_id, one.recorded)
    assert door.count() == before + 3


@pytest.mark.parametrize(
    ("name", "key", "asked", "error"),
    [
        ("note", "", {"text": "long enough to mean something"}, BadKey),
        ("note", "k" * 201, {"text": "long enough to mean something"}, BadKey),
        ("note", "short", {"text": "short"}, BadCommand),
        ("note", "typo", {"txt": "long enough to mean something"}, BadCommand),
        ("notes", "name", {"text": "long enough to mean something"}, UnknownCommand),
    ],
)
def test_what_cannot_be_carried_out_leaves_nothing(
    door: Door, name: str, key: str, asked: dict[str, str], error: type[Exception]
) -> None:
    before = door.count()
    with pytest.raises(error):
        door.say(name, key, **asked)
    assert door.count() == before


def test_a_secret_in_a_note_is_not_stored_and_the_same_key_still_finds_it(door: Door) -> None:
    secret = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
    first = door.say("note", "secret", text=f"the deploy token is {secret}")
    again = door.say("note", "secret", text=f"the deploy token is {secret}")
    assert secret not in json.dumps(first.recorded)
    assert (first.status, again.status, first.event_id) == ("new", "duplicate", again.event_id)


def test_a_door_whose_database_went_away_opens_again(door: Door) -> None:
    door.say("note", "before", text="Backups are kept for a month")
    door.connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'memctl intake'"
    )
    assert door.say("note", "away", text="Backups are tested every quarter").status == "new"


def test_what_the_user_says_later_stands_and_both_sides_are_told_with_their_dates(door: Door) -> None:
    door.say("note", "npm", text="use npm for everything")
    first = door.known()
    (npm,) = [i for i in claims.knowledge(first, EVERYWHERE).items if i.subject == "one/package manager"]
    door.say("note", "pnpm", text="always use pnpm, never npm")
    reader = door.known()
    (found,) = [i for i in claims.knowledge(reader, EVERYWHERE).items if i.subject == "one/package manager"]
    stands, gone = found.claims
    assert (found.status, stands.canonical, gone.canonical) == ("conflicted", "pnpm", "npm")
    assert (gone.superseded_by, gone.valid_until) == (stands.id, stands.last_seen)
    told = explain(reader, npm.claims[0].id)
    (rival,) = told.conflicts
    assert (rival.text, rival.stands) == ("always use pnpm, never npm", True)


def test_a_claim_about_a_file_is_told_as_stale_once_the_file_has_changed(door: Door) -> None:
    def stale() -> list[bool]:
        items = claims.knowledge(door.known(), EVERYWHERE).items
        return [claim.stale for item in items for claim in item.claims if claim.files]

    noted = time.time()
    door.say("note", "retries", text="Retries are counted in the client", files=["src/retry.py"])
    assert stale() == [False]
    for path in ("src/other.py", "src/retry.py"):
        seconds = int(noted - NOON / 1_000_000) + 60
        edit = {"file_path": f"{door.location}/{path}", "old_string": "3", "new_string": "4"}
        append(
            door.connection,
            1,
            [
                observed(each, session=path, at=seconds, actor=actor, location=door.location)
                for each, actor in (
                    (PromptSubmitted(line=f"{path}-1", text="please change how often it is tried"), "user"),
                    (ToolCalled(line=f"{path}-2", tool="Edit", call=path, input=edit), "agent"),
                    (ToolReturned(line=f"{path}-3", tool="Edit", call=path, text="done"), "tool"),
                )
            ],
        )
        assert stale() == [path == "src/retry.py"]


def test_an_explanation_goes_down_to_the_characters_that_were_said(door: Door) -> None:
    door.say("note", "tuesdays", text="Deploys go out on Tuesdays")
    reader = door.known()
    (insight,) = [i for i in claims.insights(reader, EVERYWHERE, limit=200).items if "Tuesdays" in i.text]
    memory = queries.memories(reader, EVERYWHERE, kind="knowledge", limit=200)
    (active,) = [m for m in memory.items if "Tuesdays" in m.text]
    told = explain(reader, active.id[:13])
    assert [(level.level, level.reached) for level in told.levels] == [(n, True) for n in (4, 3, 2, 1, 0)]
    assert told.levels[2].id == insight.id
    (quoted,) = told.evidence
    assert (quoted.evidence.quote, quoted.evidence.holds) == ("Deploys go out on Tuesdays", True)


def test_a_quote_whose_source_was_altered_or_erased_is_shown_as_broken(door: Door) -> None:
    done = door.say("note", "broken", text="Invoices are sent from the second queue")
    reader = door.known()
    (insight,) = [i for i in claims.insights(reader, EVERYWHERE, limit=200).items if "Invoices" in i.text]
    assert not [why for why in broken_quotes(reader)[1] if "Invoices" in why]
    with door.connection.transaction(force_rollback=True):
        door.connection.execute("ALTER TABLE memctl.events DISABLE TRIGGER USER")
        altered = json.dumps({"text": "Invoices are sent from the third queue"})
        door.connection.execute("UPDATE memctl.events SET payload = %s WHERE event_id = %s", [altered, done.event_id])
        (quoted,) = explain(reader, insight.id).evidence
        assert not quoted.evidence.holds
        (why,) = [why for why in broken_quotes(reader)[1] if "Invoices" in why]
        assert "reads otherwise now" in why
        door.connection.execute("UPDATE memctl.events SET payload = NULL WHERE event_id = %s", [done.event_id])
        (why,) = [why for why in broken_quotes(reader)[1] if "Invoices" in why]
        assert "was erased" in why


def test_a_quote_holds_though_something_else_was_told_under_the_key_of_its_source(door: Door) -> None:
    """The other is longer, and what reads that key would take it; what folds the note never saw it."""
    done = door.say("note", "shared", text="Backups are made on Sundays")
    key, stream = door.connection.execute(
        "SELECT dedupe_key, stream FROM memctl.events WHERE event_id = %s", [done.event_id]
    ).fetchone() or ("", "")
    title = observed(NoticeReceived(line="1", kind="title", text="please write the changelog for the next release"))
    append(door.connection, 1, [msgspec.structs.replace(title, dedupe_key=key, stream=stream)])
    reader = door.known()
    (insight,) = [i for i in claims.insights(reader, EVERYWHERE, limit=200).items if "Sundays" in i.text]
    (quoted,) = explain(reader, insight.id).evidence
    assert (quoted.evidence.quote, quoted.evidence.holds) == ("Backups are made on Sundays", True)
    assert not [why for why in broken_quotes(reader)[1] if "Sundays" in why]


def test_what_a_person_rejects_leaves_what_is_known_and_comes_back_by_their_word(door: Door) -> None:
    def standing() -> bool:
        found = claims.knowledge(door.known(), EVERYWHERE, limit=200).items
        return any("Standups" in claim.text for item in found for claim in item.claims)

    door.say("note", "standup", text="Standups are on Mondays only")
    assert standing()
    (insight,) = [i for i in claims.insights(door.known(), EVERYWHERE, limit=200).items if "Standups" in i.text]
    door.say("reject", "no", claim=insight.id[:12], why="they are daily")
    assert not standing()
    assert "a person rejected it" in explain(door.known(), insight.id).missing
    door.say("verify-knowledge", "yes", claim=insight.id)
    assert standing()


def test_what_is_open_is_resolved_and_core_memory_refuses_a_stale_edit(door: Door) -> None:
    open_ = door.say("note", "ask", text="The cause of the slow build is unknown")
    answer = door.say("note", "answer", text="The slow build was the cache")
    reader = door.known()
    ids = {i.text: i.id for i in claims.insights(reader, EVERYWHERE, limit=200).items}
    asked, told = ids[open_.recorded["text"]], ids[answer.recorded["text"]]
    door.say("resolve", "resolve", condition=asked, resolution="confirmed", resolved_to=told)
    assert claims.effective_id(door.known(), asked) == ("resolved", told)
    door.say("core-append", "core-1", section="user", content="Jin")
    door.say("core-append", "core-2", section="user", content="Seoul", version=1)
    with pytest.raises(SectionChanged):
        door.say("core-append", "core-3", section="user", content="lost", version=1)
    assert door.say("core-append", "core-2", section="user", content="Seoul", version=1).status == "duplicate"
    assert [s.text for s in claims.core_memory(door.known())] == ["Jin\nSeoul"]
    was = claims.core_history(door.known(), "user").items
    assert [(each.version, each.text) for each in was] == [(2, "Jin\nSeoul"), (1, "Jin")]
    assert claims.core_history(door.known(), "nobody").items == []


def test_what_is_stated_where_no_session_is_belongs_to_the_place_and_context_shows_it(door: Door) -> None:
    at = {"location": "/home/dev/attic"}
    begun = door.say("task-start", "t1", description="Sort the boxes by year", type="chore", **at)
    door.say("hypothesis-propose", "t2", text="the damp comes from the chimney", confidence=0.6, **at)
    door.say("decide", "t3", text="keep the letters", rationale="they are few", **at)
    seen = context(door.known(), EVERYWHERE, begun.stream)
    assert (seen.task_description, seen.task_type, seen.task_status) == (
        "Sort the boxes by year",
        "chore",
        "open",
    )
    assert [held.text for held in seen.hypotheses] == ["the damp comes from the chimney"]
    assert [decided.text for decided in seen.decisions] == ["keep the letters"]
    door.say("hypothesis-update", "t4", hypothesis="the damp", status="confirmed", **at)
    seen = context(door.known(), EVERYWHERE, begun.stream)
    assert seen.hypotheses == []
    assert [decided.kind for decided in seen.decisions] == ["choice", "cause"]


def test_a_task_is_ended_by_its_id_from_anywhere_and_only_once(door: Door) -> None:
    begun = door.say("task-start", "e1", description="Paint the fence before autumn", location="/home/dev/garden")
    open_now = work.tasks(door.known(), EVERYWHERE, status="open").items
    (task,) = (each for each in open_now if each.description == "Paint the fence before autumn")
    done = door.say("task-done", "e2", session=task.id, outcome="partial", note="the back is left")
    assert done.stream == begun.stream
    assert door.say("task-done", "e2", session=task.id, outcome="partial", note="the back is left").status == (
        "duplicate"
    )
    with pytest.raises(NothingOpen):
        door.say("task-done", "e3", session=task.id)
    (ended,) = (each for each in work.tasks(door.known(), EVERYWHERE).items if each.id == task.id)
    assert (ended.status, ended.outcome) == ("done", "partial")
    (episode,) = (each for each in work.episodes(door.known(), EVERYWHERE).items if each.stream == begun.stream)
    assert episode.why == "the user said so: the back is left"


def test_no_session_is_told_as_such(door: Door) -> None:
    nowhere = Places("nowhere", "asked", ("/home/dev/nowhere",))
    with pytest.raises(NoSession, match="in project nowhere"):
        context(door.known(), nowhere)
