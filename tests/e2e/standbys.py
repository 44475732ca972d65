"""Questions asked of a standby, and failovers, with Debian's PostgreSQL and HAProxy.

`make test-own-servers` runs this. (It is no test that `make test` collects.)
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from clusters import Cluster, cluster, connects, ended, free_port, make_folder, needed, proxy
from commandline import Memctl
from events import prompt
from waiting import until
from working import caught_up

from memctl.domain.events.event import NewEvent
from memctl.infra.database import DatabaseUnavailable, connect
from memctl.infra.log.append import append
from memctl.infra.log.spaces import log_id

COUNTED = "SELECT count(*) FROM memctl.events"
WORDS = "We rely on the {} protocol everywhere."


@pytest.fixture
def pair(servers_folder: Path) -> Iterator[tuple[Cluster, Cluster]]:
    """A PostgreSQL and a standby that follows it."""
    with cluster(servers_folder / "one") as one:
        two = one.copy(servers_folder / "two", "-R", "-X", "stream")
        with ended(two):
            two.start(hot_standby_feedback="on")
            yield one, two


def either(one: Cluster, two: Cluster, which: str) -> str:
    """A URL that names both, the first that is `which`."""
    return f"postgresql://memctl:{one.password}@{one.address},{two.address}/postgres?target_session_attrs={which}"


def test_questions_go_to_a_standby_that_says_how_old_it_is(pair: tuple[Cluster, Cluster], home: Memctl) -> None:
    one, two = pair
    home.environment |= {"MEMCTL_DATABASE_URL": one.url, "MEMCTL_STANDBY_URL": either(two, one, "prefer-standby")}
    home("up")
    home("ingest", "--example", "--wait")
    home("note", WORDS.format("lantern"))
    until(lambda: folded(one.url))
    until(lambda: found(home, "lantern"))
    with connect(two.url) as connection:
        assert connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'memctl api'"
        ).fetchone() != (0,), "the standby was asked"
    assert "answers questions, 0.0 s behind" in home("doctor", code=None)

    two.ask("SELECT pg_wal_replay_pause()")
    home("note", WORDS.format("harbour"))
    until(lambda: folded(one.url))
    assert not found(home, "harbour")
    position = one.ask("SELECT max(position) FROM memctl.events")
    status, answer = home.asked(f"/v1/memories?min_position={position}")
    assert (status, "not yet to" in answer) == (503, True), answer
    assert found(home, "lantern")
    home("forget", "--match", WORDS.format("lantern"), "--yes")
    assert not found(home, "lantern"), "what was forgotten is asked for where it is written"
    home("note", WORDS.format("lantern"))
    until(lambda: "the standby that questions are asked of is" in home("status", code=None))
    assert "is behind" not in home("doctor", code=None).partition("postgres")[0]
    with contextlib.suppress(psycopg.errors.SerializationFailure):  # what it applies at once may be in its way
        two.ask("SELECT pg_wal_replay_resume()")
    until(lambda: found(home, "harbour"))
    assert home.asked(f"/v1/memories?min_position={position}")[0] == 200

    assert "lantern" in home("search", WORDS.format("lantern"), "--as-of", "2100-01-01")

    # Rows are replaced under those who read them there.
    statuses = set[int]()
    replay = threading.Thread(target=home, args=["replay", "--all"])
    replay.start()
    while replay.is_alive():
        statuses.add(home.asked("/v1/memories?limit=50")[0])
    assert statuses == {200}

    two.stop()
    until(lambda: found(home, "lantern"), "questions to go where it is written")


@pytest.mark.parametrize("way", ["addresses", "haproxy"])
@pytest.mark.parametrize("replicated", ["synchronously", "asynchronously"])
def test_a_standby_takes_over(
    way: str, replicated: str, pair: tuple[Cluster, Cluster], home: Memctl, servers_folder: Path, tmp_path: Path
) -> None:
    one, two = pair
    if replicated == "synchronously":
        one.ask("ALTER SYSTEM SET synchronous_standby_names = '*'")
        one.ask("SELECT pg_reload_conf()")
        until(lambda: one.ask("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == 1)
    with url_of(way, one, two, servers_folder) as url:
        home.environment["MEMCTL_DATABASE_URL"] = url
        home("up")
        home("ingest", "--example", "--wait")
        with connect(url) as connection:
            log = log_id(connection)
        until(lambda: folded(url))
        acknowledged = set[str]()
        writer = threading.Thread(target=append_some, args=[url, 0, 100_000, acknowledged])
        if replicated == "synchronously":
            writer.start()
            until(lambda: len(acknowledged) > 300)
            one.kill()  # as it writes
            writer.join(60)
        else:
            append_some(url, 0, 100, acknowledged)
            until(lambda: two.ask(COUNTED) == one.ask(COUNTED))
            two.stop()
            append_some(url, 100, 50, acknowledged)
            until(lambda: folded(url))
            one.kill()
            two.start()
        two.promote()
        if replicated == "synchronously":
            two.ask("ALTER SYSTEM SET synchronous_standby_names = ''")
            two.ask("SELECT pg_reload_conf()")
        until(lambda: answers(url))
        append_some(url, 200_000, 20, acknowledged)
        with connect(url) as connection:
            held = {str(id) for (id,) in connection.execute("SELECT dedupe_key FROM memctl.events").fetchall()}
            assert log_id(connection) != log, "relays send again what they sent"
        lost = acknowledged - held
        assert len(lost) == (0 if replicated == "synchronously" else 50), lost
        print(f"{len(acknowledged)} acknowledged, {len(lost)} lost")
        until(lambda: folded(url))
        home("note", WORDS.format("cellar"))
        until(lambda: folded(url))
        assert found(home, "cellar")
        home("verify", "--repair")
        home("replay", "--all", "--verify")
        home("verify")
        home("down")


def url_of(way: str, one: Cluster, two: Cluster, folder: Path):  # type: ignore[no-untyped-def]
    @contextlib.contextmanager
    def by_haproxy() -> Iterator[str]:
        where, port = make_folder(folder / "haproxy"), free_port()
        (where / "haproxy.cfg").write_text(
            "defaults\n mode tcp\n timeout connect 2s\n timeout client 1h\n timeout server 1h\n"
            f"listen postgres\n bind 127.0.0.1:{port}\n option redispatch\n"
            " default-server inter 500ms fall 2 rise 2 on-marked-down shutdown-sessions\n"
            f" server one {one.address} check\n server two {two.address} check backup\n"
        )
        with proxy([needed("haproxy"), "-f", str(where / "haproxy.cfg")], where, lambda: connects(port)):
            yield f"postgresql://memctl:{quote(one.password)}@127.0.0.1:{port}/postgres"

    return by_haproxy() if way == "haproxy" else contextlib.nullcontext(either(one, two, "read-write"))


def append_some(url: str, since: int, count: int, acknowledged: set[str]) -> None:
    """Append so many events, each by a commit of its own, or until the connection is lost; note the keys of those that
    were acknowledged."""
    with connect(url) as connection, contextlib.suppress(psycopg.OperationalError):
        for number in range(since, since + count):
            event: NewEvent = prompt(number, f"words {number}", session="failover")
            append(connection, 1, [event])
            acknowledged.add(event.dedupe_key)


def answers(url: str) -> bool:
    try:
        with connect(url) as connection:
            return connection.execute("SELECT pg_is_in_recovery()").fetchone() == (False,)
    except DatabaseUnavailable:
        return False


def folded(url: str) -> bool:
    with connect(url) as connection:
        return caught_up(connection)


def found(home: Memctl, word: str) -> bool:
    return word in home("search", WORDS.format(word), code=None)
