"""What an answer says where something of the machine's failed."""

from __future__ import annotations

import errno

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from memctl.api.http import problems


@pytest.mark.parametrize(("number", "status"), [(errno.ENOSPC, 507), (errno.EDQUOT, 507), (errno.EIO, 500)])
def test_a_disk_without_room_is_said_to_have_none(number: int, status: int) -> None:
    app = FastAPI()
    problems.install(app)

    @app.get("/")
    def write() -> None:
        raise OSError(number, "no")

    answer = TestClient(app, raise_server_exceptions=False).get("/")
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert answer.json()["status"] == status
