"""Where settings name an API, `status` and `doctor` say whether it answers there."""

from __future__ import annotations

import json
from pathlib import Path

from apis import Api, serving
from asked import Remembered
from click.testing import CliRunner

from memctl.cli.operate.status import status
from memctl.cli.operate.verify import doctor


def seen(api: Api) -> tuple[str, str]:
    """What is wrong with the API by `status`, and what `doctor` finds."""
    environment = {**api.environment, "MEMCTL_REDIS_URL": "redis://127.0.0.1:1"}
    answer = json.loads(CliRunner(env=environment).invoke(status, ["--json"]).stdout)
    checks = json.loads(CliRunner(env=environment).invoke(doctor, ["--json"]).stdout)["checks"]
    (of_api,) = [each for each in checks if each["part"] == "api"]
    said = CliRunner(env=environment).invoke(status).stdout
    assert bool(answer["api"]) == ("the API does not answer" in said)
    return answer["api"], of_api["result"]


def test_an_api_that_is_named_and_does_not_answer_is_said(memory: Remembered, tmp_path: Path) -> None:
    with serving(tmp_path, memory, embedder="none") as api:
        assert seen(api) == ("", "ok")
        api.environment["MEMCTL_API_TOKEN"] = "of-somebody-else"
        assert seen(api) == ("", "ok"), "a machine that only works may have no token"
        api.process.kill()
        what, result = seen(api)
    assert what.startswith(f"the API does not answer at {api.url}")
    assert result == "gap"
