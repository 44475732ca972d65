"""The whole way against servers in containers, where a Docker engine answers: Postgres 15, Redis 7, a Qdrant server."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import servers
from histories import example
from processes import memctl
from waiting import until
from working import caught_up, prove

from memctl.infra.database import connect
from memctl.infra.log.append import append
from memctl.infra.log.migrate import migrate
from memctl.infra.readmodels import generations


@pytest.fixture(scope="module")
def _docker() -> None:
    if shutil.which("docker") is None:
        pytest.skip("there is no Docker on this machine")
    try:
        asked = subprocess.run(["docker", "info"], capture_output=True, text=True, timeout=20, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("the Docker engine does not answer within 20 s")
    if asked.returncode != 0:
        pytest.skip(f"no Docker engine answers: {(asked.stderr.strip().splitlines() or ['no reason given'])[-1]}")


@pytest.fixture(scope="module")
def containers(_docker: None) -> Iterator[dict[str, str]]:
    from testcontainers.core.container import DockerContainer
    from testcontainers.core.waiting_utils import wait_for_logs
    from testcontainers.postgres import PostgresContainer
    from testcontainers.redis import RedisContainer

    with (
        PostgresContainer("postgres:15", driver=None) as postgres,
        RedisContainer("redis:7") as redis,
        DockerContainer("qdrant/qdrant:latest").with_exposed_ports(6333) as qdrant,
    ):
        wait_for_logs(qdrant, "Qdrant HTTP listening", timeout=60)
        yield {
            "MEMCTL_DATABASE_URL": postgres.get_connection_url(),
            "MEMCTL_REDIS_URL": f"redis://{redis.get_container_host_ip()}:{redis.get_exposed_port(6379)}/0",
            "MEMCTL_QDRANT_URL": f"http://{qdrant.get_container_host_ip()}:{qdrant.get_exposed_port(6333)}",
        }


def test_a_history_goes_the_whole_way_through_servers_in_containers(containers: dict[str, str], tmp_path: Path) -> None:
    with servers.fresh_database(containers["MEMCTL_DATABASE_URL"]) as url:
        environment = {
            **containers,
            "MEMCTL_DATABASE_URL": url,
            "MEMCTL_DATA_DIR": str(tmp_path / "data"),
            "MEMCTL_QDRANT_API_KEY": "",
            "MEMCTL_EMBEDDER": "none",
        }
        migrate(url)
        with connect(url) as log:
            generations.ensure_live(log, 4)
            append(log, 1, [event for number in range(6) for event in example(number, day=number + 2)])
            with memctl("worker", environment=environment, log=tmp_path / "worker.log"):
                until(lambda: caught_up(log), "catching up")
            prove(log, environment)
