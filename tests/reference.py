"""docs/reference, written from the code: the command line, the API, metrics, events, read models, settings.

python tests/reference.py          # writes the pages
python tests/reference.py --check  # ends with 1 where a page is not what the code says
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo

PAGES = Path(__file__).parents[1] / "docs" / "reference"

WRITTEN = "<!-- Written by `make docs` from the code. -->\n\n"


def pages() -> dict[str, str]:
    """Every page by its file's name."""
    made = {
        "cli.md": _command_line,
        "configuration.md": _settings,
        "events.md": _events,
        "read-models.md": _read_models,
        "api.md": _api,
        "metrics.md": _metrics,
    }
    return {name: WRITTEN + "\n".join(lines()).rstrip() + "\n" for name, lines in made.items()}


def stale() -> list[str]:
    """Names of pages that are not as the code says."""
    return [name for name, text in pages().items() if not (PAGES / name).exists() or _read(PAGES / name) != text]


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


# --- the command line ---


def _command_line() -> Iterator[str]:
    from memctl.cli.main import COMMANDS, memctl

    yield "# Command line\n"
    yield "Data goes to stdout, messages to stderr. Exit codes: 0, 1 failed, 2 usage, 3 nothing found.\n"
    context = click.Context(memctl, info_name="memctl")
    for name in COMMANDS:
        command = memctl.get_command(context, name)
        assert command is not None
        yield from _command(command, click.Context(command, context, info_name=name))


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"## `{context.command_path}`\n"
    yield f"```\n{usage}\n```\n"
    told = inspect.cleandoc(command.help or "") + "\n"
    yield re.sub(r"^\x08\n((?:.+\n)+)", r"```sh\n\1```\n", told, flags=re.MULTILINE)
    options = [option for option in command.params if isinstance(option, click.Option) and not option.hidden]
    if options:
        yield "| option | |\n| --- | --- |"
        for option in options:
            record = option.get_help_record(context)
            if record is not None:
                yield f"| `{_cell(record[0])}` | {_cell(record[1])} |"
        yield ""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _command(inner, click.Context(inner, context, info_name=name))


# --- settings ---


def _settings() -> Iterator[str]:
    from memctl.infra.settings_model import PROJECT_MAY_SET, Settings

    yield "# Configuration\n"
    yield "In this order: flags, environment, the nearest `.memctl.toml`, the user's `config.toml`, the running"
    yield "instance, defaults. `memctl config` shows each value in force and where it came from. A checkout's"
    yield f"`.memctl.toml` may only set {', '.join(f'`{name}`' for name in sorted(PROJECT_MAY_SET))}.\n"
    yield "| setting | environment | default | |\n| --- | --- | --- | --- |"
    nested = {}
    for name, field in Settings.model_fields.items():
        if isinstance(field.default, BaseModel):
            nested[name] = field
        else:
            yield _setting(name, f"MEMCTL_{name.upper()}", field)
    for name, group in nested.items():
        yield f"\n## `[{name}]`\n"
        yield f"{(group.description or '').capitalize()}.\n"
        yield "| setting | environment | default | |\n| --- | --- | --- | --- |"
        for inner, field in type(group.default).model_fields.items():
            yield _setting(f"{name}.{inner}", f"MEMCTL_{name.upper()}__{inner.upper()}", field)


def _setting(name: str, environment: str, field: FieldInfo) -> str:
    default = (
        "" if field.is_required() or field.default_factory or field.default in (None, "") else f"`{field.default}`"
    )
    return f"| `{name}` | `{environment}` | {_cell(default)} | {_cell(field.description or '')} |"


# --- the log and what is folded from it ---


def _events() -> Iterator[str]:
    from memctl.domain.events.event import event_types

    yield "# Events\n"
    yield "Everything that may stand in the log. Each event also has an id, a stream, a dedupe key, a time, an actor"
    yield "and a location. Fields that stand at their default are left out of what is stored.\n"
    for entry in sorted(event_types().values(), key=lambda entry: entry.name):
        yield f"## `{entry.name}`, version {entry.version}\n"
        yield inspect.cleandoc(entry.doc) + "\n"
        yield ", ".join(f"`{name}`" for name in entry.payload.__struct_fields__) + "\n"


def _read_models() -> Iterator[str]:
    from memctl.projections.kernel import projections

    yield "# Read models\n"
    yield "Rows folded from the log, each of which `memctl replay NAME --verify` builds anew and compares.\n"
    for projection in sorted(projections(), key=lambda projection: (projection.stage, projection.name)):
        yield f"## `{projection.name}`, stage {projection.stage}\n"
        yield inspect.cleandoc(projection.row.__doc__ or "") + "\n"
        yield ", ".join(f"`{name}`" for name in projection.row.__struct_fields__) + "\n"


# --- the API ---


def described_api() -> dict[str, Any]:
    """The description of the whole API, which nothing serves."""
    from memctl.api.reading.reader import Readers
    from memctl.api.search.engine import Engine
    from memctl.api.server.application import application
    from memctl.api.viewer.sign_in import Browsers
    from memctl.api.write.command_handler import CommandHandler
    from memctl.api.write.remote_ingest import RemoteIngest
    from memctl.infra.embedders import NONE, Embedders
    from memctl.infra.settings import load_settings

    readers = Readers("postgresql://nowhere", "default")
    engine, settings = Engine("", "", Embedders(NONE), "default"), load_settings()
    doors, deliveries = CommandHandler(settings, readers), RemoteIngest(settings, readers)
    app = application(readers, engine, doors, Browsers("none"), deliveries)
    found: dict[str, Any] = app.openapi()
    return found


def _api() -> Iterator[str]:
    from memctl.api.client import SPACE

    yield "# API\n"
    yield "Under the API's address (`memctl config`), with `Authorization: Bearer TOKEN`. The whole description, with"
    yield "schemas and examples, is at `/v1/openapi.json`. Errors are problem documents (RFC 9457).\n"
    yield f"The header `{SPACE}` may name the space that is meant, as verbs do where `space` is set; an API that"
    yield "answers for another refuses it with 421.\n"
    for path, operations in sorted(described_api()["paths"].items()):
        for method, operation in operations.items():
            yield f"## `{method.upper()} {path}`\n"
            yield str(operation.get("description", "")).strip() + "\n"
            if scopes := operation.get("x-scopes"):
                yield f"For keys with scope {' or '.join(f'`{each}`' for each in scopes)}.\n"
            asked = [each for each in operation["parameters"] if each["name"] != SPACE]
            if asked:
                yield "| parameter | in | |\n| --- | --- | --- |"
                for parameter in asked:
                    yield f"| `{parameter['name']}` | {parameter['in']} | {_cell(_told(parameter))} |"
                yield ""


def _metrics() -> Iterator[str]:
    from memctl.api.http.metrics import METRICS

    yield "# Metrics\n"
    yield "At `/metrics` of the API, in the text format of Prometheus, with its token or a key of scope `operate`."
    yield "`infra/deploy/grafana` has a dashboard over them, `infra/deploy/prometheus` rules for alerts.\n"
    yield "| metric | kind | labels | |\n| --- | --- | --- | --- |"
    for metric in METRICS:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        yield f"| `memctl_{metric.name}` | {metric.kind} | {labels} | {_cell(metric.meaning)} |"


def _told(parameter: dict[str, Any]) -> str:
    schema = parameter.get("schema", {})
    said = [parameter.get("description", "")]
    values = schema.get("enum") or next((one["enum"] for one in schema.get("anyOf", ()) if "enum" in one), None)
    if values:
        said.append(f"One of {', '.join(map(str, values))}.")
    if schema.get("default") is not None:
        said.append(f"{schema['default']} where it is left out.")
    if parameter.get("required"):
        said.append("Required.")
    return " ".join(part for part in said if part)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


if __name__ == "__main__":
    os.environ.setdefault("MEMCTL_DATA_DIR", "/nonexistent")
    if "--check" in sys.argv[1:]:
        wrong = stale()
        sys.exit(f"run `make docs`: {', '.join(wrong)} are not what the code says" if wrong else 0)
    PAGES.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (PAGES / name).write_text(text, encoding="utf-8")
