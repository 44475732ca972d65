"""What stands in infra/deploy: it names commands, settings and units that there are."""

from __future__ import annotations

import configparser
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from memctl.api.http.metrics import METRICS
from memctl.cli.commands import COMMANDS
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


def test_the_image_holds_the_locked_versions_and_no_secrets_of_whoever_builds_it() -> None:
    steps = (DEPLOY / "compose" / "Dockerfile").read_text(encoding="utf-8")
    assert re.search(
        r"pip install .*--require-hashes -r requirements\.lock.*\n(?s:.*)pip install .*--no-deps \.", steps
    )
    ignored = (DEPLOY.parents[1] / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert {".git", ".venv", ".scratch", "**/.env"} <= set(ignored)


@pytest.mark.parametrize("unit", UNITS, ids=named)
def test_a_unit_refers_to_no_page_of_the_manual_since_there_is_none(unit: Path) -> None:
    assert "man:" not in unit.read_text(encoding="utf-8")


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
