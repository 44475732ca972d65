"""A repository that is cloned where another lay, on one machine and at one path, neither reads the former one's memory
nor writes into it, until a person says that both are one project. What is only renewed or renamed keeps its memory."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from urllib.parse import quote
from uuid import uuid4

import pytest
import servers
from apis import serving
from asked import Remembered
from data_dirs import used
from forking import ran
from histories import drained
from msgspec import structs
from poisoning.foreign import git
from poisoning.test_foreign import OURS, Stage, say, session, shown, terminal, waiting
from poisoning.test_poisoning import hooked

from memctl.api.erasure.scope import forget, plan
from memctl.api.reading.caller import OWNER
from memctl.api.reading.reader import reader_of
from memctl.api.write.ingest import Account, ingest, ingest_history
from memctl.api.write.ingest_writer import IngestWriter
from memctl.domain.events.event import Micros, NewEvent
from memctl.domain.support.location import of_occupant, path_of, since_of
from memctl.infra.database import connect
from memctl.infra.git import there_since
from memctl.infra.readmodels import generations
from memctl.infra.settings import Settings, load_settings

CANARY = "quillreplaced"
ALPHA, BETA = "git.example.org/dana/{}-alpha", "git.example.org/eve/{}-beta"


def now() -> int:
    return time.time_ns() // 1000


class Shop:
    """A path at which checkouts lie one after the other, and the sessions that work in them."""

    def __init__(self, stage: Stage, name: str) -> None:
        self.stage, self.name, self.at = stage, name, stage.folder / "src" / name
        self.alpha, self.beta = ALPHA.format(name), BETA.format(name)
        self._sessions = 0

    @property
    def settings(self) -> Settings:
        return load_settings(database_url=self.stage.database, data_dir=used(self.stage.folder / "data"))

    def lay(self, remote: str = "") -> None:
        """Put a repository there instead of what there was."""
        shutil.rmtree(self.at, ignore_errors=True)
        self.at.mkdir(parents=True)
        git(self.at, "init", "-q", "-b", "main")
        if remote:
            git(self.at, "remote", "add", "origin", f"https://{remote}.git")

    def said(self, word: str, *, at: int = 0, below: str = "") -> list[NewEvent]:
        """A session there, now or at a moment."""
        self._sessions += 1
        events = session(f"{self.name}-{self._sessions}", self.at / below, word)[:3]
        return [structs.replace(each, occurred_at=Micros((at or now()) + n)) for n, each in enumerate(events)]

    def keep(self, events: list[NewEvent], writer: IngestWriter | None = None) -> list[str]:
        """Record them, by a process that knows nothing but what was recorded, and fold. What became of each."""
        own = writer or IngestWriter(self.settings)
        done = [each.status for each in own.write_rest(own.prepare(events)).appended]
        if writer is None:
            own.close()
            drained(self.stage.database)
        return list(done)

    def works(self, word: str, *, at: int = 0, below: str = "") -> None:
        self.keep(self.said(word, at=at, below=below))

    def shown(self) -> str:
        return shown(self.stage.api, self.at)

    def known(self, project: str) -> str:
        """What is kept of a project that is named."""
        routes = ("knowledge", "memories", "history", "sessions")
        answers = [self.stage.api.ask(f"/v1/{each}?project={quote(project)}&limit=200") for each in routes]
        return "\n".join(body.decode() for _, _, body in answers)

    def locations(self) -> list[str]:
        """Where what happened there is recorded."""
        with connect(self.stage.database) as connection:
            rows = connection.execute(
                "SELECT DISTINCT location FROM memctl.events WHERE location LIKE %s AND payload IS NOT NULL ORDER BY 1",
                [f"%{self.at}%"],
            )
            return [row[0] for row in rows]

    def later(self) -> str:
        """Where what lies there now is recorded, if it came over another."""
        return of_occupant(there_since(str(self.at)), str(self.at))

    def apart(self) -> None:
        """What lies there now and what lay there before share nothing."""
        assert OURS not in self.shown()
        self.works(CANARY)
        assert self.later() in self.locations()
        there = self.shown()
        assert CANARY in there
        assert OURS not in there


@pytest.fixture(scope="module")
def stage(
    postgres_server: str, migrated_template: str, vectors: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("replaced").resolve()
    url, token = vectors
    with servers.fresh_database(postgres_server, template=migrated_template) as database:
        with connect(database) as connection:
            generations.ensure_live(connection, 2)
        memory = Remembered(database, url, token, "none")
        with serving(tmp_path_factory.mktemp("api"), memory, embedder="none") as api:
            yield Stage(api, database, folder, folder, {})


@pytest.fixture
def shop(stage: Stage) -> Shop:
    return Shop(stage, f"shop{uuid4().hex[:8]}")


def test_a_repository_that_is_cloned_where_another_lay_shares_nothing_with_it(shop: Shop) -> None:
    shop.lay(shop.alpha)
    shop.works(OURS)
    assert OURS in shop.shown()
    shop.lay(shop.beta)
    shop.apart()
    assert OURS in shop.known(shop.alpha)
    assert CANARY not in shop.known(shop.alpha)
    assert CANARY in shop.known(shop.beta)
    assert CANARY in shop.known(str(shop.at)), "whoever names the path means what lies there"
    assert OURS not in shop.known(str(shop.at))
    environment = {**os.environ, **shop.stage.api.environment}
    for project, held, other in ((shop.alpha, OURS, CANARY), (str(shop.at), CANARY, OURS)):
        written = ran("export", "--project", project, environment=environment).out
        assert held in written
        assert other not in written


def test_also_where_the_former_or_the_new_one_has_no_remote(stage: Stage) -> None:
    for name, former, new in (("shop-private", "", BETA), ("shop-made-private", ALPHA, "")):
        shop = Shop(stage, name)
        shop.lay(former.format(name))
        (shop.at / "src").mkdir()
        shop.works(OURS, below="src")
        shop.lay(new.format(name))
        shop.apart()


RENEWED: dict[str, Callable[[Shop], object]] = {
    "set-url": lambda shop: git(shop.at, "remote", "set-url", "origin", f"https://{shop.beta}.git"),
    "remote-removed": lambda shop: git(shop.at, "remote", "remove", "origin"),
    "cloned-again": lambda shop: shop.lay(shop.alpha),
    "chown": lambda shop: [os.chown(each, -1, os.getgid()) for each in [shop.at, *shop.at.rglob("*")]],
}


@pytest.mark.parametrize("how", RENEWED)
def test_what_is_renamed_or_renewed_keeps_its_memory(shop: Shop, how: str) -> None:
    shop.lay(shop.alpha)
    shop.works(OURS)
    RENEWED[how](shop)
    shop.works("candidly")
    assert OURS in shop.shown()
    assert "candidly" in shop.shown()
    assert shop.locations() == [str(shop.at)]
    assert str(shop.at) not in waiting(shop.stage.api)


def test_a_folder_that_becomes_a_repository_or_gets_a_remote_keeps_its_memory(shop: Shop) -> None:
    shop.at.mkdir(parents=True)
    shop.works(OURS)
    git(shop.at, "init", "-q")
    shop.works("candidly")
    git(shop.at, "remote", "add", "origin", f"https://{shop.alpha}.git")
    shop.works("candour")
    assert shop.locations() == [str(shop.at)]
    assert all(word in shop.shown() for word in (OURS, "candidly", "candour"))


def test_a_repository_that_was_moved_here_with_its_old_sessions_may_get_a_remote(shop: Shop) -> None:
    """What its sessions of before show is of the directory that lies there since."""
    for remote in ("", shop.alpha):
        shop.lay(remote)
        shop.works(OURS, at=now() - 10**12)
        git(shop.at, "remote", "set-url" if remote else "add", "origin", f"https://{shop.beta}.git")
        shop.works("candidly")
        assert shop.locations() == [str(shop.at)]
        shop = Shop(shop.stage, f"{shop.name}-again")


def test_what_is_read_later_is_of_who_lay_there_when_it_happened(shop: Shop) -> None:
    shop.lay(shop.alpha)
    before = now()
    shop.works("candour")
    shop.lay(shop.beta)
    shop.works(OURS, at=before)
    assert shop.locations() == [str(shop.at)]
    shop.apart()
    after = now()
    shutil.rmtree(shop.at)
    shop.works("quillgone", at=after, below="src")
    shop.works("ourwords", at=before, below="src")
    assert "quillgone" in shop.known(shop.beta)
    assert "ourwords" in shop.known(shop.alpha)
    assert "quillgone" not in shop.known(shop.alpha)
    assert {path_of(at) for at in shop.locations()} == {str(shop.at), f"{shop.at}/src"}


def test_what_is_sent_again_by_another_process_is_there_once(shop: Shop) -> None:
    shop.lay(shop.alpha)
    shop.works(OURS)
    shop.lay(shop.beta)
    events = shop.said(CANARY)
    assert shop.keep(events) == ["new"] * 3
    assert shop.keep(events) == ["duplicate"] * 3
    with IngestWriter(shop.settings) as writer:
        assert shop.keep(events, writer) == ["duplicate"] * 3
        bare = writer.append(writer.prepare(events).events, by_todays_rules=True)
        assert [each.status for each in bare] == ["duplicate"] * 3, "whose place it is makes no other event"
    assert shop.locations() == [str(shop.at), shop.later()]


def test_what_is_not_folded_yet_counts_for_the_process_that_recorded_it(shop: Shop) -> None:
    with IngestWriter(shop.settings) as writer:
        shop.lay(shop.alpha)
        shop.keep(shop.said(OURS), writer)
        shop.lay(shop.beta)
        shop.keep(shop.said(CANARY), writer)
        shop.lay(shop.beta)
        shop.keep(shop.said(CANARY), writer)
    drained(shop.stage.database)
    assert [bool(since_of(each)) for each in shop.locations()] == [False, True]
    assert OURS not in shop.shown()


def test_a_session_goes_on_where_the_new_one_lies(shop: Shop) -> None:
    shop.lay(shop.alpha)
    began = shop.said(OURS)
    shop.keep(began[:1])
    shop.lay(shop.beta)
    went_on = [structs.replace(each, occurred_at=Micros(now() + n)) for n, each in enumerate(began[1:])]
    shop.keep(went_on)
    assert shop.locations() == [str(shop.at), shop.later()]


def test_the_former_memory_comes_back_with_its_repository(shop: Shop) -> None:
    shop.lay(shop.alpha)
    shop.works(OURS)
    shop.lay(shop.beta)
    shop.works(CANARY)
    shop.lay(shop.alpha)
    shop.works("candidly")
    there = shop.shown()
    assert OURS in there
    assert "candidly" in there
    assert CANARY not in there
    assert CANARY in shop.known(shop.beta)
    assert not [root for root in waiting(shop.stage.api) if root == shop.later()]


def test_what_lies_in_the_new_checkout_is_of_it_whatever_its_dates_say(shop: Shop) -> None:
    shop.lay(shop.alpha)
    shop.works(OURS)
    shop.lay(shop.beta)
    (shop.at / ".aider.chat.history.md").write_text(
        f"# aider chat started at 2019-01-02 10:00:00\n\n#### We use {CANARY} for dates, not floats.  \n\nYes.\n"
    )
    message = f"Use {CANARY}commits for dates\n\nFloats are not exact, so {CANARY}commits stays because of rounding."
    git(shop.at, "commit", "-q", "--allow-empty", "--date", "2019-01-02T10:00:00Z", "-m", message)
    with IngestWriter(shop.settings) as writer:
        assert ingest(writer, [shop.at]).new
        assert ingest_history(writer, [shop.at], account=Account(), progress=lambda path, size: None).new
    drained(shop.stage.database)
    assert shop.locations() == [str(shop.at), shop.later()]
    assert CANARY not in shop.known(shop.alpha)
    assert CANARY in shop.known(shop.beta)


def test_a_worktree_of_what_lies_there_is_of_it(shop: Shop) -> None:
    shop.lay(shop.alpha)
    shop.works(OURS)
    shop.lay(shop.beta)
    git(shop.at, "commit", "-q", "--allow-empty", "-m", "one")
    tree = shop.at.parent / f"{shop.name}-tree"
    git(shop.at, "worktree", "add", "-q", str(tree))
    events = [structs.replace(each, location=str(tree)) for each in shop.said(CANARY)]
    shop.keep(events)
    assert OURS not in shown(shop.stage.api, tree)
    assert CANARY in shown(shop.stage.api, tree)
    assert CANARY in shop.shown()
    assert CANARY not in shop.known(shop.alpha)


def test_a_person_is_asked_whether_both_are_one_project(shop: Shop) -> None:
    shop.lay()
    shop.works(OURS)
    shop.lay(shop.beta)
    start = hooked(shop.stage.api, "SessionStart", str(shop.at), source="startup")
    assert OURS not in start
    assert "lies where" in start
    assert "`memctl project join`" in start
    shop.works(CANARY)
    assert waiting(shop.stage.api)[shop.later()] == str(shop.at)
    environment = {**os.environ, **shop.stage.api.environment}
    listed = ran("project", "list", "--waiting", environment=environment).out
    assert "lies where another project's checkout lay" in " ".join(listed.split())
    assert say(shop.stage, "merge-projects", into=str(shop.at), project=shop.later(), by="agent") == 422
    assert terminal(shop.stage, "project", "join", str(shop.at), person=False) == 2
    assert OURS not in shop.shown()
    assert terminal(shop.stage, "project", "join", str(shop.at), person=True) == 0
    assert OURS in shop.shown()
    assert CANARY in shop.shown()
    assert shop.later() not in waiting(shop.stage.api)
    assert terminal(shop.stage, "project", "split", str(shop.at), person=True) == 0
    assert OURS not in shop.shown()
    assert shop.later() not in waiting(shop.stage.api)


def test_a_no_ends_the_question(shop: Shop) -> None:
    shop.lay(shop.alpha)
    shop.works(OURS)
    shop.lay()
    shop.works(CANARY)
    assert shop.later() in waiting(shop.stage.api)
    assert terminal(shop.stage, "project", "join", str(shop.at), "--no", person=True) == 0
    assert shop.later() not in waiting(shop.stage.api)
    assert OURS not in shop.shown()
    assert "memctl project" not in hooked(shop.stage.api, "SessionStart", str(shop.at), source="startup")


def test_a_second_clone_over_a_former_checkout_is_asked_about_its_remote_alone(shop: Shop) -> None:
    other = Shop(shop.stage, f"{shop.name}-other")
    other.lay(shop.beta)
    other.works("candour")
    shop.lay(shop.alpha)
    shop.works(OURS)
    shop.lay(shop.beta)
    shop.works(CANARY)
    assert waiting(shop.stage.api)[shop.later()] == shop.beta
    assert terminal(shop.stage, "project", "join", str(shop.at), person=True) == 0
    assert shop.later() not in waiting(shop.stage.api)
    assert "candour" in shop.shown()
    assert OURS not in shop.shown()


def test_what_a_person_says_there_is_of_what_lies_there(shop: Shop) -> None:
    shop.lay(shop.alpha)
    shop.works(OURS)
    shop.lay(shop.beta)
    shop.works("candidly")
    body = {"by": "user", "text": f"Run {CANARY}note before a release.", "location": str(shop.at)}
    status = shop.stage.api.ask(
        "/v1/commands/note", method="POST", body=json.dumps(body).encode(), headers={"Idempotency-Key": uuid4().hex}
    )
    assert status[0] == 200, status
    drained(shop.stage.database)
    assert f"{CANARY}note" in shop.shown()
    assert CANARY not in shop.known(shop.alpha)


@pytest.mark.parametrize("which", ["former", "new"])
def test_forgetting_one_reaches_all_of_it_and_nothing_of_the_other(shop: Shop, which: str) -> None:
    shop.lay(shop.alpha)
    former = [*shop.said(OURS), *shop.said(OURS, below="src")]
    (shop.at / "src").mkdir()
    shop.keep(former)
    shop.lay(shop.beta)
    (shop.at / "src").mkdir()
    new = [*shop.said(CANARY), *shop.said(CANARY, below="src")]
    shop.keep(new)
    named = shop.alpha if which == "former" else str(shop.at)
    with connect(shop.stage.database) as connection:
        reader = reader_of(connection, "default", OWNER)
        forget(shop.settings, connection, plan(shop.settings, reader, project=named), None)
    drained(shop.stage.database)
    left = {"former": CANARY, "new": OURS}[which]
    with connect(shop.stage.database) as connection:
        rows = connection.execute(
            "SELECT DISTINCT payload->>'text' FROM memctl.events WHERE location LIKE %s AND payload ? 'text'",
            [f"%{shop.at}%"],
        ).fetchall()
    assert rows
    assert all(left in text or text == "a.py" for (text,) in rows)
    assert OURS not in shop.shown()
    # What was forgotten does not come back at the other's place, once nothing lies there.
    shutil.rmtree(shop.at)
    again = [
        structs.replace(each, dedupe_key=f"{each.dedupe_key}-again") for each in (former if which == "former" else new)
    ]
    assert shop.keep(again) == ["forgotten"] * 6
