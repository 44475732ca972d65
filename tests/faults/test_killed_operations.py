"""What takes long is killed at moments drawn by chance: nothing is lost or half done, and it can be done again.

The suite kills each twice; a soak ten times as often for each `FACTOR`, and scrubs too.
"""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import dying
import pytest
import servers
from histories import digests, drained, example, workshop
from soak import FACTOR
from waiting import seconds, until

from memctl.api.checks.verify import Verification
from memctl.infra.backup import archive, copies, receipts
from memctl.infra.data_dir import Folders, make_private
from memctl.infra.database import Connection, connect
from memctl.infra.embedded.postgres import start_postgres
from memctl.infra.embedded.scrub import finish_scrub
from memctl.infra.log import erase
from memctl.infra.log.append import append
from memctl.infra.log.migrate import migrate
from memctl.infra.readmodels import generations
from memctl.infra.settings import load_settings
from memctl.workers.rebuild.replay import replay

KILLS = 10 * FACTOR or 2
RECEIPT = "content.erased"
DAY = 24
OLD, KEPT = [*workshop(0), *workshop(DAY)], [*example(1), *workshop(20 * DAY)]


@pytest.fixture(scope="module")
def mortals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dying.Mortals]:
    folder = tmp_path_factory.mktemp("mortals")
    rows = ({"content": f"the parser must not use eval {n}", "chat_platform": "cli", "id": n} for n in range(60))
    (folder / dying.STORE).write_text("".join(json.dumps(row) + "\n" for row in rows))
    with dying.mortals(folder) as mortals:
        yield mortals


@pytest.fixture(scope="module")
def remembered(postgres_server: str, migrated_template: str) -> Iterator[str]:
    """Name of a database in which both histories are folded."""
    with servers.fresh_database(postgres_server, migrated_template) as url:
        with connect(url) as log:
            generations.ensure_live(log, 2)
            append(log, 1, [*OLD, *KEPT])
        drained(url)
        yield urlsplit(url).path.lstrip("/")


def stored(log: Connection) -> dict[str, bool]:
    """Every event with its type, and whether its words are there."""
    return dict(log.execute("SELECT event_id::text || type, payload IS NOT NULL FROM memctl.events").fetchall())


def backups_are_whole(mortals: dying.Mortals, before: dict[str, bool], now: dict[str, bool]) -> None:
    assert now == before
    for file in copies.backups(mortals.folder / copies.FOLDER):
        assert archive.check(file).tables["events"].rows == len(before)


def nothing_changed(mortals: dying.Mortals, before: dict[str, bool], now: dict[str, bool]) -> None:
    assert now == before


def nothing_else_went(mortals: dying.Mortals, before: dict[str, bool], now: dict[str, bool]) -> None:
    assert before.keys() <= now.keys()


def all_or_nothing(mortals: dying.Mortals, before: dict[str, bool], now: dict[str, bool]) -> None:
    assert len(now) in (0, len(OLD) + len(KEPT))


def words_only_came(mortals: dying.Mortals, before: dict[str, bool], now: dict[str, bool]) -> None:
    assert before.items() <= now.items()


OPERATIONS: dict[str, tuple[dying.Act, Callable[[dying.Mortals, dict[str, bool], dict[str, bool]], None]]] = {
    "retention": (dying.prune, nothing_else_went),
    "backup": (dying.back_up, backups_are_whole),
    "restore": (dying.restore, all_or_nothing),
    "forgetting": (dying.forget, nothing_else_went),
    "rebuild": (dying.replay, nothing_changed),
    "import": (dying.import_store, words_only_came),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_killed_at_any_moment_loses_nothing_and_can_be_done_again(
    mortals: dying.Mortals, postgres_server: str, templates: servers.Templates, remembered: str, name: str
) -> None:
    act, holds = OPERATIONS[name]
    template = remembered
    if name == "restore":
        with servers.fresh_database(postgres_server, remembered) as url:
            dying_to_the_end(mortals, dying.back_up, url)
        template = templates.live(2)
    with servers.fresh_database(postgres_server, template) as url, connect(url) as log:
        statements = mortals.statements(act, url)
        drained(url)
        expected = stored(log), digests(log)
    luck = random.Random(f"{name} {FACTOR}")
    for after in (luck.randrange(statements) for _ in range(KILLS)):
        if name != "restore":  # each database begins without what was forgotten in the one before
            (mortals.folder / receipts.RECEIPTS).unlink(missing_ok=True)
        with servers.fresh_database(postgres_server, template) as url, connect(url) as log:
            before = stored(log)
            assert mortals.dies(act, url, after), after
            until(lambda log=log: ended(log), "the end of the killed backends")
            holds(mortals, before, stored(log))
            dying_to_the_end(mortals, act, url)
            drained(url)
            differing = {event for event, _ in stored(log).items() ^ expected[0].items()}
            # What is pruned again has receipts of its own.
            assert {each for each in differing if name != "retention" or not each.endswith(RECEIPT)} == set(), after
            assert {name for name, _ in digests(log).items() ^ expected[1].items()} == set(), after
            is_sound(url, log, mortals)


def dying_to_the_end(mortals: dying.Mortals, act: dying.Act, url: str) -> None:
    assert not mortals.dies(act, url, dying.NEVER)


def ended(log: Connection) -> bool:
    found = log.execute(
        "SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        " AND backend_type = 'client backend'"
    )
    return found.fetchone() is None


def is_sound(url: str, log: Connection, mortals: dying.Mortals) -> None:
    settings = load_settings(database_url=url, data_dir=mortals.folder)
    found = [each for each in Verification(settings).checks() if each.part != "vectors"]  # of which there are none
    assert [(each.name, each.found) for each in found if each.result == "gap"] == []
    assert erase.receipts(log, unfinished=True) == []
    assert generations.generations(log, "building") == []
    assert replay(url, None, verify=True, processes=1).equal


SCRUB = """
import sys
from pathlib import Path
from vector_server import die_with_parent
from memctl.infra.data_dir import Folders
from memctl.infra.embedded.scrub import copy_cluster, finish_scrub

die_with_parent()
places = Folders(Path(sys.argv[1]))
copy_cluster(places)
finish_scrub(places)
"""


@pytest.mark.skipif(not FACTOR, reason="a scrub starts two servers: a soak does it")
def test_a_scrub_killed_at_any_moment_leaves_one_database_whole(tmp_path: Path) -> None:
    places = Folders(tmp_path / "data")
    for folder in (places.data, places.run, places.log):
        make_private(folder)
    with start_postgres(places.postgres) as server:
        migrate(server.url)
        with connect(server.url) as log:
            generations.ensure_live(log, 2)
            append(log, 1, [*OLD, *KEPT])
            drained(server.url)
            expected = stored(log), digests(log)

    def scrub() -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", SCRUB, str(places.data)], cwd=Path(__file__).parents[1])

    took = seconds(lambda: scrub().wait())
    luck = random.Random(FACTOR)
    for moment in (luck.uniform(0, took) for _ in range(KILLS)):
        with scrub() as scrubbing:
            with contextlib.suppress(subprocess.TimeoutExpired):
                scrubbing.wait(moment)
            scrubbing.kill()
        finish_scrub(places)
        with start_postgres(places.postgres) as server, connect(server.url) as log:
            assert (stored(log), digests(log)) == expected, moment
    assert scrub().wait() == 0
    with start_postgres(places.postgres) as server, connect(server.url) as log:
        assert (stored(log), digests(log)) == expected
        assert replay(server.url, None, verify=True, processes=1).equal
    assert not list(places.data.glob("postgres.*"))
