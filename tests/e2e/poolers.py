"""memctl behind a real PgBouncer. `make test-own-servers` runs this. (It is no test that `make test` collects.)"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from clusters import Cluster, cluster, pgbouncer
from commandline import Memctl

from memctl.infra.database import TransactionPooling, connect


@pytest.fixture
def postgres(servers_folder: Path) -> Iterator[Cluster]:
    with cluster(servers_folder / "pg", fsync="off") as found:
        yield found


def test_behind_a_pooler_of_sessions_all_of_it_works_with_what_a_pooler_comes_with(
    postgres: Cluster, servers_folder: Path, home: Memctl
) -> None:
    with pgbouncer(servers_folder / "sessions", postgres, pool_mode="session") as url:
        home.environment["MEMCTL_DATABASE_URL"] = url
        home("up")
        home("ingest", "--example", "--wait")
        home("note", "The harbour protocol is spoken by the lantern.")
        assert home.json("search", "harbour protocol lantern")
        home("replay", "--all", "--verify")
        home("replay", "--all", "--shards", "4")
        home("forget", "--match", "harbour protocol", "--yes")
        home("backup")
        home("verify")
        said = home("doctor", code=None)
        assert "through a pooler" in said
        assert "transaction" not in said
        home("down")


def test_what_holds_for_a_session_holds_behind_a_pooler(postgres: Cluster, servers_folder: Path) -> None:
    settings = ("lock_timeout", "idle_in_transaction_session_timeout", "statement_timeout", "timezone")
    asked = "SELECT " + ", ".join(f"current_setting('{name}')" for name in settings)
    dropped = {"pool_mode": "session", "ignore_startup_parameters": "options"}
    with pgbouncer(servers_folder / "dropped", postgres, **dropped) as url, connect(url, statement_timeout_ms=7) as one:
        assert one.execute(asked.encode()).fetchone() == ("30s", "1min", "7ms", "UTC")


@pytest.mark.parametrize("mode", ["transaction", "statement"])
def test_a_pooler_of_transactions_is_refused_with_a_word(
    mode: str, postgres: Cluster, servers_folder: Path, home: Memctl
) -> None:
    with pgbouncer(servers_folder / mode, postgres, pool_mode=mode, ignore_startup_parameters="options") as url:
        with pytest.raises(TransactionPooling):
            connect(url)
        home.environment |= {"MEMCTL_DATABASE_URL": url, "MEMCTL_API_URL": "http://127.0.0.1:1"}
        home("init", code=1)
        assert "pool_mode" in home.said
        said = home("doctor", code=1)
        assert "locks and limits do not last" in said
        assert "pool_mode" in said


def test_a_busy_pooler_of_transactions_is_refused_too(postgres: Cluster, servers_folder: Path) -> None:
    """Others' transactions are under way: each of ours may be served by another session."""
    options = {"pool_mode": "transaction", "ignore_startup_parameters": "options", "server_round_robin": "1"}
    with pgbouncer(servers_folder / "busy", postgres, **options) as url:
        others = [psycopg.connect(url) for _ in range(4)]
        for other in others:
            other.execute("SELECT 1")
        for other in others[:2]:
            other.commit()
        with pytest.raises(TransactionPooling):
            connect(url)
        for other in others:
            other.close()


def test_a_pool_that_is_all_taken_says_so(postgres: Cluster, servers_folder: Path) -> None:
    options = {"pool_mode": "session", "default_pool_size": "2", "query_wait_timeout": "2"}
    with pgbouncer(servers_folder / "full", postgres, **options) as url, connect(url):
        other = psycopg.connect(url)
        other.execute("SELECT 1")
        from memctl.infra.database import TooManyConnections

        with pytest.raises(TooManyConnections, match="query_wait_timeout"):
            connect(url)
        other.close()
