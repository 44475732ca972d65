"""What stands in infra/deploy: it names commands, settings and units that there are."""

from __future__ import annotations

import configparser
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from memctl.api.metrics import METRICS, Sample, Timings, exposition
from memctl.cli.main import COMMANDS
from memctl.infra.settings_model import Settings

DEPLOY = Path(__file__).parents[2] / "infra" / "deploy"
FILES = sorted(path for path in DEPLOY.rglob("*") if path.is_file())
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))


def named(path: Path) -> str:
    return str(path.relative_to(DEPLOY))


@pytest.mark.parametrize("path", FILES, ids=named)
def test_every_setting_that_is_named_exists(path: Path) -> None:
    for name in re.findall(r"MEMCTL_([A-Z0-9_]+)", path.read_text(encoding="utf-8")):
        assert name.lower() in Settings.model_fields, f"MEMCTL_{name} is no setting"


@pytest.mark.parametrize("unit", UNITS, ids=named)
def test_a_unit_runs_a_command_that_exists(unit: Path) -> None:
    commands = re.findall(r"^Exec\w+=\S*/memctl (\w+)", unit.read_text(encoding="utf-8"), re.MULTILINE)
    assert commands
    assert set(commands) <= set(COMMANDS)


def test_supervisord_runs_commands_that_exist() -> None:
    config = configparser.ConfigParser(interpolation=None)
    config.read(DEPLOY / "supervisor" / "memctl.conf")
    programs = [name for name in config.sections() if name.startswith("program:")]
    assert config["group:memctl"]["programs"] == ",".join(name.removeprefix("program:") for name in programs)
    for program in programs:
        assert config[program]["command"].split("/memctl ")[-1] in COMMANDS


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
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("no kubectl on this machine")
    made = subprocess.run([kubectl, "kustomize", str(DEPLOY / "kubernetes")], capture_output=True, check=True).stdout
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


@pytest.mark.parametrize(("what", "file"), [("rules", "alerts.yaml"), ("config", "prometheus.yml")])
def test_prometheus_takes_its_files(what: str, file: str) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool on this machine")
    more = ["--syntax-only"] if what == "config" else ["--lint=all", "--lint-fatal"]
    path = str(DEPLOY / "prometheus" / file)
    told = subprocess.run([promtool, "check", what, *more, path], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout + told.stderr


def test_prometheus_reads_every_kind_of_line_that_metrics_are_told_in() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool on this machine")
    timings = Timings()
    timings.took(0.2, "GET", "/v1/search", "2xx")
    samples = [Sample(m.name, 1, m.labels) for m in METRICS if m.kind != "histogram"]
    text = exposition(samples, timings)
    told = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    # Its habits are not ours everywhere: what was counted since a start ends with `_total` by its own.
    found = [line for line in told.stderr.splitlines() if 'should have "_total" suffix' not in line]
    assert found == []
    assert "error" not in told.stdout


def test_compose_and_kubernetes_run_commands_that_exist() -> None:
    compose: dict[str, Any] = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text(encoding="utf-8"))
    ours = [service for service in compose["services"].values() if service["image"] == "memctl:local"]
    commands = [service["command"] for service in ours]
    for path in (DEPLOY / "kubernetes").glob("*.yaml"):
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            pod = document.get("spec", {}).get("template", {}).get("spec", {})
            commands += [container["args"] for container in pod.get("containers", ())]
    assert len(commands) == 6
    for command in commands:
        assert command[0] in COMMANDS


def test_compose_asks_for_every_secret_that_its_example_names() -> None:
    asked = re.findall(r"\$\{(\w+):\?", (DEPLOY / "compose" / "compose.yaml").read_text(encoding="utf-8"))
    example = (DEPLOY / "compose" / ".env.example").read_text(encoding="utf-8")
    assert set(asked) == set(re.findall(r"^(\w+)=", example, re.MULTILINE))


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("no systemd-analyze on this machine")
    for unit in (*UNITS, DEPLOY / "systemd" / "memctl.target"):
        text = unit.read_text(encoding="utf-8")
        (tmp_path / unit.name).write_text(re.sub(r"(Exec\w+=)\S*/memctl", r"\1/bin/true", text), encoding="utf-8")
    units = [str(path) for path in tmp_path.iterdir() if path.name != "memctl-worker@.service"]
    told = subprocess.run([analyze, "verify", "--man=no", *units], capture_output=True, text=True, check=False)
    about_ours = [line for line in told.stderr.splitlines() if "memctl" in line]
    assert about_ours == []


def exposed() -> set[str]:
    """Every time series that /metrics may have."""
    ends = {"histogram": ("_bucket", "_sum", "_count")}
    return {f"memctl_{metric.name}{end}" for metric in METRICS for end in ends.get(metric.kind, ("",))}


def queried(expression: str) -> set[str]:
    assert expression.count("(") == expression.count(")")
    assert expression.count("{") == expression.count("}")
    names = set(re.findall(r"\bmemctl_\w+", expression))
    for name, selector in re.findall(r"\b(memctl_\w+)\{([^}]*)\}", expression):
        (metric,) = [metric for metric in METRICS if name.startswith(f"memctl_{metric.name}")][-1:]
        labels = {label.partition("=")[0].strip(" !~") for label in selector.split(",")}
        assert labels <= {*metric.labels, "job", "instance"}, f"{name} has no {labels}"
    return names


def test_the_dashboard_asks_for_figures_that_there_are_and_leaves_none_out() -> None:
    dashboard = json.loads((DEPLOY / "grafana" / "memctl.json").read_text(encoding="utf-8"))
    asked = set[str]()
    for panel in dashboard["panels"]:
        assert panel["title"]
        for target in panel["targets"]:
            asked |= queried(target["expr"])
    assert asked <= exposed()
    assert not [
        metric.name for metric in METRICS if not any(name.startswith(f"memctl_{metric.name}") for name in asked)
    ]
    places = [tuple(panel["gridPos"].values()) for panel in dashboard["panels"]]
    assert all(x + width <= 24 for x, _, width, _ in places)
    assert len(set(places)) == len(places)


def test_alerts_ask_for_figures_that_there_are_and_name_commands_that_there_are() -> None:
    rules = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yaml").read_text(encoding="utf-8"))
    (group,) = rules["groups"]
    names = [rule["alert"] for rule in group["rules"]]
    assert len(set(names)) == len(names) > 8
    for rule in group["rules"]:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert queried(rule["expr"]) <= exposed()
        assert re.fullmatch(r"\d+[smh]", rule.get("for", "1m"))
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"]["summary"]
        for command in re.findall(r"`memctl (\w+)", rule["annotations"].get("description", "")):
            assert command in COMMANDS
