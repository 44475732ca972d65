"""What stands in infra/deploy, read by the programs that it is for, as far as they are on this machine."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from memctl.api.http.metrics import METRICS, Sample, Timings, exposition

DEPLOY = Path(__file__).parents[2] / "infra" / "deploy"


def program(name: str) -> str:
    """Its path, or the test is skipped."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"no {name} on this machine")
    return path


def test_supervisord_reads_its_programs(tmp_path: Path) -> None:
    from supervisor.options import ServerOptions

    text = (DEPLOY / "supervisor" / "memctl.conf").read_text(encoding="utf-8")
    text = re.sub(r"^user = .*", "", text, flags=re.MULTILINE).replace("/var/log/memctl", str(tmp_path))
    (tmp_path / "memctl.conf").write_text(text, encoding="utf-8")
    (tmp_path / "main.conf").write_text("[supervisord]\n[include]\nfiles = memctl.conf\n", encoding="utf-8")
    options = ServerOptions()
    options.realize(["-c", str(tmp_path / "main.conf"), "--nodaemon"])
    (group,) = options.process_group_configs
    names = sorted(process.name for process in group.process_configs)
    assert names == ["memctl-api", "memctl-door", "worker-0", "worker-1"]


def test_kubernetes_schemas_hold_for_what_kustomize_makes() -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="`make test-deploy` brings it")
    made = subprocess.run(
        [program("kubectl"), "kustomize", str(DEPLOY / "kubernetes")], capture_output=True, check=True
    ).stdout
    resources = list(yaml.safe_load_all(made))
    assert len(resources) == 5
    for resource in resources:
        kubernetes_validate.validate(resource, kubernetes_validate.latest_version(), strict=True)


def test_compose_is_what_its_specification_says() -> None:
    compose_spec = pytest.importorskip("compose_spec", reason="`make test-deploy` brings it")
    text = (DEPLOY / "compose" / "compose.yaml").read_text(encoding="utf-8")
    # Merge keys are YAML's; the specification's own reader wants them resolved, and then refuses what it does not know.
    resolved = {key: value for key, value in yaml.safe_load(text).items() if not key.startswith("x-")}
    project = compose_spec.PyCompose.from_json(json.dumps(resolved))
    project.validate()
    assert set(project.service_names()) == {"init", "api", "worker", "postgres", "valkey", "qdrant"}
    resolved["services"]["api"]["restrat"] = "always"
    with pytest.raises(ValueError, match="restrat"):
        compose_spec.PyCompose.from_json(json.dumps(resolved))


def test_grafana_knows_every_field_of_the_dashboard() -> None:
    model = pytest.importorskip("grafana_foundation_sdk.models.dashboard", reason="`make test-deploy` brings it")
    from grafana_foundation_sdk.cog.encoder import JSONEncoder

    dashboard = json.loads((DEPLOY / "grafana" / "memctl.json").read_text(encoding="utf-8"))

    def lost(data: object) -> list[str]:
        """What Grafana's own types do not take of it, by path."""
        return missing(data, json.loads(JSONEncoder(sort_keys=True).encode(model.Dashboard.from_json(data))))

    assert lost(dashboard) == []
    dashboard["panels"][0]["gridpos"] = {}
    assert lost(dashboard) == ["/panels/0/gridpos"]


def missing(given: object, read: object, at: str = "") -> list[str]:
    """The paths of a document at which another has nothing, or something else."""
    if isinstance(given, dict) and isinstance(read, dict):
        gone = [f"{at}/{name}" for name in given if name not in read]
        return gone + [
            path for name in given if name in read for path in missing(given[name], read[name], f"{at}/{name}")
        ]
    if isinstance(given, list) and isinstance(read, list) and len(given) == len(read):
        return [path for number, each in enumerate(given) for path in missing(each, read[number], f"{at}/{number}")]
    return [] if given == read else [at]


@pytest.mark.parametrize(("what", "file"), [("rules", "alerts.yaml"), ("config", "prometheus.yml")])
def test_prometheus_takes_its_files(what: str, file: str) -> None:
    more = ["--syntax-only"] if what == "config" else ["--lint=all", "--lint-fatal"]
    path = str(DEPLOY / "prometheus" / file)
    told = subprocess.run(
        [program("promtool"), "check", what, *more, path], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stdout + told.stderr


def test_prometheus_reads_every_kind_of_line_that_metrics_are_told_in() -> None:
    timings = Timings()
    timings.took(0.2, "default", "GET", "/v1/search", "2xx")
    samples = [Sample(m.name, 1, m.labels) for m in METRICS if m.kind != "histogram"]
    text = exposition(samples, timings)
    told = subprocess.run(
        [program("promtool"), "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    # Its habits are not ours everywhere: what was counted since a start ends with `_total` by its own.
    found = [line for line in told.stderr.splitlines() if 'should have "_total" suffix' not in line]
    assert found == []
    assert "error" not in told.stdout


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    analyze = program("systemd-analyze")
    for unit in (*(DEPLOY / "systemd").glob("*.service"), DEPLOY / "systemd" / "memctl.target"):
        text = unit.read_text(encoding="utf-8")
        (tmp_path / unit.name).write_text(re.sub(r"(Exec\w+=)\S*/memctl", r"\1/bin/true", text), encoding="utf-8")
    units = [str(path) for path in tmp_path.iterdir() if path.name != "memctl-worker@.service"]
    told = subprocess.run([analyze, "verify", "--man=no", *units], capture_output=True, text=True, check=False)
    about_ours = [line for line in told.stderr.splitlines() if "memctl" in line]
    assert about_ours == []
