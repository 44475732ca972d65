"""docs/reference, written from the code: the command line, the API, metrics, events, read models, settings.

python tests/reference.py          # writes the pages
python tests/reference.py --check  # ends with 1 where a page is not what the code says
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import click
from limits import Limit
from limits import limits as every_limit
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
        "limits.md": _limits,
    }
    return {name: WRITTEN + "\n".join(lines()).rstrip() + "\n" for name, lines in made.items()}


def stale() -> list[str]:
    """Names of pages that are not as the code says."""
    return [name for name, text in pages().items() if not (PAGES / name).exists() or _read(PAGES / name) != text]


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


# --- the command line ---

OFTEN, SEVERAL = 3, 2
"""What so many have in common is said once of them all. An option or parameter that several commands or routes have in
the same words stands once, at the head of the page."""


def _command_line() -> Iterator[str]:
    from memctl.cli.commands import COMMANDS
    from memctl.cli.main import memctl

    context = click.Context(memctl, info_name="memctl")
    found: list[tuple[click.Command, click.Context]] = []
    for name in COMMANDS:
        command = memctl.get_command(context, name)
        assert command is not None
        found += _with_inner(command, click.Context(command, context, info_name=name))
    shared = _shared(option for command, inner in found for option in _options(command, inner))
    yield "# Command line\n"
    yield "Data goes to stdout, messages to stderr. Exit codes: 0, 1 failed, 2 usage, 3 nothing found."
    yield "`memctl COMMAND --help` says more of each command, with examples. Headings leave out `memctl`."
    yield "A command is called by its name alone, or in its group: `memctl admin replay` is `memctl replay`.\n"
    yield "## Options of several commands\n"
    yield "A command that takes one of these names it behind *Also*, with its default.\n"
    for flag, meaning in sorted(shared.items()):
        yield f"- `{flag}`: {meaning}"
    yield ""
    for command, inner in found:
        yield from _command(command, inner, shared)


def _with_inner(command: click.Command, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    """The command, and those below it."""
    yield command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _with_inner(inner, click.Context(inner, context, info_name=name))


def _options(command: click.Command, context: click.Context) -> Iterator[tuple[str, str, str]]:
    """Of each option what is written, what it means, and its default with the values that it may have."""
    for option in command.params:
        if isinstance(option, click.Option) and (record := option.get_help_record(context)):
            flag = re.sub(r"(INTEGER|FLOAT) RANGE", "N", record[0])
            meaning, _, limits = record[1].partition("  [default: ")
            if not meaning.strip() or limits:
                limits = re.sub(r"; (.+)\]$", r", \1", limits).removesuffix("]")
            yield flag, meaning.strip(), limits


def _shared(options: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    counted = Counter((flag, meaning) for flag, meaning, _ in options)
    return {flag: meaning for (flag, meaning), times in reversed(counted.most_common()) if times >= SEVERAL}


def _command(command: click.Command, context: click.Context, shared: dict[str, str]) -> Iterator[str]:
    """A command's call, the first paragraph of its help, and the options that are its own."""
    left_out = {"[OPTIONS]", "COMMAND [ARGS]..."}
    words = [word for word in command.collect_usage_pieces(context) if word not in left_out]
    yield f"## `{' '.join([context.command_path.removeprefix('memctl '), *words])}`\n"
    also, own = [], []
    for flag, meaning, limits in _options(command, context):
        if shared.get(flag) == meaning:
            also.append(f"`{flag.split()[0]}`" + (f" ({limits.partition(',')[0]})" if limits else ""))
        else:
            own.append(f"- `{flag}`: {meaning}{f' Default {limits}.' if limits else ''}".rstrip(": "))
    said = inspect.cleandoc(command.help or "").partition("\n\n")[0]
    yield said + (f" Also {', '.join(also)}." if also else "") + "\n"
    yield from [*own, ""] if own else []


# --- settings ---


def _settings() -> Iterator[str]:
    from memctl.infra.settings_model import PROJECT_MAY_SET, Settings

    yield "# Configuration\n"
    yield "In this order: flags, environment, the nearest `.memctl.toml`, the user's `config.toml`, the running"
    yield "instance, defaults. `memctl config` shows each value in force and where it came from. A checkout's"
    yield f"`.memctl.toml` may only set {', '.join(f'`{name}`' for name in sorted(PROJECT_MAY_SET))}.\n"
    yield "In the environment a setting's name is in capitals behind `MEMCTL_`, with `__` for the dot: `llm.api_key` is"
    yield "`MEMCTL_LLM__API_KEY`. In brackets are the defaults.\n"
    nested = {}
    for name, field in Settings.model_fields.items():
        if isinstance(field.default, BaseModel):
            nested[name] = field
        else:
            yield _setting(name, field)
    for name, group in nested.items():
        yield f"\n## `[{name}]`\n"
        yield f"{(group.description or '').capitalize()}.\n"
        for inner, field in type(group.default).model_fields.items():
            yield _setting(f"{name}.{inner}", field)


def _setting(name: str, field: FieldInfo) -> str:
    default = ""
    if not field.is_required() and not field.default_factory and field.default not in (None, ""):
        default = f" (`{field.default}`)"
    return f"- `{name}`{default}: {field.description or ''}"


# --- the log and what is folded from it ---


def _events() -> Iterator[str]:
    from memctl.domain.events.event import Payload, event_types

    def parents(payload: type) -> list[type]:
        """The classes that it takes several fields from, the most general first."""
        above = [each for each in payload.__mro__[1:] if issubclass(each, Payload)]
        return [each for each in reversed(above) if len(_own(each)) > 1]

    entries = sorted(event_types().values(), key=lambda entry: entry.name)
    yield "# Events\n"
    yield "Everything that may stand in the log. Each event also has an id, a stream, a dedupe key, a time, an actor"
    yield "and a location. Fields that stand at their default are left out of what is stored.\n"
    yield "## Fields of several events\n"
    for parent in dict.fromkeys(each for entry in entries for each in parents(entry.payload)):
        yield f"- *{parent.__name__.strip('_')}*: {', '.join(f'`{name}`' for name in _own(parent))}"
    for entry in entries:
        within = parents(entry.payload)
        inherited = {name for parent in within for name in _own(parent)}
        names = [f"*{parent.__name__.strip('_')}*" for parent in within]
        names += [f"`{name}`" for name in entry.payload.__struct_fields__ if name not in inherited]
        yield f"\n## `{entry.name}`{f', version {entry.version}' if entry.version > 1 else ''}\n"
        yield inspect.cleandoc(entry.doc) + "\n"
        yield ", ".join(names)


def _own(struct: type) -> list[str]:
    """Fields that a struct has and its parent has not."""
    fields: tuple[str, ...] = getattr(struct, "__struct_fields__", ())
    return [name for name in fields if name not in getattr(struct.__base__, "__struct_fields__", ())]


def _read_models() -> Iterator[str]:
    from memctl.projections.kernel import projections

    yield "# Read models\n"
    yield "Rows folded from the log, each of which `memctl replay NAME --verify` builds again and"
    yield "compares. Times are in microseconds.\n"
    for projection in sorted(projections(), key=lambda projection: (projection.stage, projection.name)):
        yield f"## `{projection.name}`, stage {projection.stage}\n"
        said = inspect.cleandoc(projection.row.__doc__ or "")
        yield (
            re.sub(r"Times in microseconds(?:\.\s*|; (\w))", lambda found: (found[1] or "").upper(), said).strip()
            + "\n"
        )
        yield ", ".join(f"`{name}`" for name in projection.row.__struct_fields__) + "\n"


# --- limits ---


FACING = ("domain.events.", "api.", "cli.", "infra.hook.", "infra.hooks.", "infra.legacy.", "infra.transcripts.")
"""The rooms that take what comes from outside, and that answer. Limits of all others are those of folds and loops."""


def _limits() -> Iterator[str]:
    yield "# Limits\n"
    yield "What is bounded where input comes in and answers go out, by module: so many characters, rows, seconds. Names"
    yield "that end in `_S` are seconds. The code has the reason beside each. Limits of folds and loops, and"
    yield "names that begin with `_`, stand in the code alone.\n"
    met = [each for each in every_limit() if not each.name.startswith("_") and f"{each.module}.".startswith(FACING)]
    for module, found in groupby(met, key=lambda limit: limit.module):
        yield f"- `{module}`: {'; '.join(_limits_of_one_reason(list(each)) for _, each in groupby(found, _reason))}"


def _reason(limit: Limit) -> str:
    return limit.reason


def _limits_of_one_reason(limits: list[Limit]) -> str:
    """Their names and values, and what they count."""
    shown = ", ".join(f"`{each.name.replace(' ', '')}={_tight(each.value)}`" for each in limits)
    unit = re.split(r"[:;(.]| which ", limits[0].reason, maxsplit=1)[0]
    if len(limits) == 1 and "," not in limits[0].name:
        unit = re.sub(r"^(\w+ \w+[^,]*?) (that|where|within|in which) .*", r"\1", unit.partition(",")[0])
    unit = re.sub(r" (in|from|within|up to|out of|for)$", "", unit.strip())
    return f"{shown} ({unit[:1].lower()}{unit[1:]})"


def _tight(value: str) -> str:
    """A number as the code has it, without blanks."""
    return re.sub(r"(?<=[,*<]) | (?=[*<])", "", value)


# --- the API ---


@functools.cache
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
    engine, settings = Engine("", "", Embedders(NONE)), load_settings()
    doors, deliveries = CommandHandler(settings, readers), RemoteIngest(settings, readers)
    app = application(readers, engine, doors, Browsers("none"), deliveries)
    found: dict[str, Any] = app.openapi()
    return found


def _api() -> Iterator[str]:
    from memctl.api.client import SPACE

    routes = [
        (f"{method.upper()} {path}", operation, [each for each in operation["parameters"] if each["name"] != SPACE])
        for path, operations in sorted(described_api()["paths"].items())
        for method, operation in operations.items()
    ]
    meanings = Counter((each["name"], _meaning(each)) for _, _, parameters in routes for each in parameters)
    shared = {name: meaning for (name, meaning), times in meanings.items() if times >= SEVERAL and meaning}
    defaults = Counter(_default(each) for _, _, parameters in routes for each in parameters if each["name"] == "limit")
    usual = max(defaults, key=lambda default: defaults[default])
    shared["limit"] += f" {usual} where no other default is named."
    shared["here"] += " Every route that takes `project` takes it."
    yield "# API\n"
    yield "Under the API's address (`memctl config`), with `Authorization: Bearer TOKEN`. A line has the first sentence"
    yield "of a route's description. All of it, schemas and examples are at `/v1/openapi.json`. Errors are problem"
    yield "documents (RFC 9457).\n"
    yield f"The header `{SPACE}` may name the space that is meant, as verbs do where `space` is set; an API that"
    yield "answers for another refuses it with 421.\n"
    yield "## Parameters of several routes\n"
    for name, meaning in sorted(shared.items()):
        yield f"- `{name}`: {meaning}"
    scopes = {tuple(operation.get("x-scopes", ())): None for _, operation, _ in routes}
    for scope in sorted(scopes, key=lambda scope: (len(scope), scope)):
        within = [(route, *rest) for route, *rest in routes if tuple(rest[0].get("x-scopes", ())) == scope]
        yield f"\n## For {_keys(scope)}\n"
        common = _common([[each["name"] for each in parameters] for _, _, parameters in within])
        if common:
            without = [
                f"`{route}`" for route, _, parameters in within if not common <= {each["name"] for each in parameters}
            ]
            each_takes = " and ".join(f"`{name}`" for name in sorted(common))
            yield f"Each takes {each_takes}{', but for ' + ', '.join(without) if without else ''}.\n"
        for route, operation, parameters in within:
            own = common if common <= {each["name"] for each in parameters} else set()
            own = own | {each["name"] for each in parameters if each["in"] == "path"}
            if {"project", "here"} <= {each["name"] for each in parameters}:
                own = own | {"here", "anywhere"}
            takes = ", ".join(_parameter(each, shared, usual) for each in parameters if each["name"] not in own)
            meaning = " ".join(operation.get("description", "").split()).partition(". ")[0].rstrip(".") + "."
            yield f"- `{route}`: {meaning}{f' Takes {takes}.' if takes else ''}"


def _keys(scope: tuple[str, ...]) -> str:
    if not scope:
        return "anybody"
    if len(scope) >= OFTEN:
        return "every key"
    return "keys with scope " + " or ".join(f"`{each}`" for each in scope)


def _common(names: list[list[str]]) -> set[str]:
    """What most of the routes take, all others being few."""
    counted = Counter(name for each in names for name in each if len(names) >= SEVERAL)
    return {name for name, times in counted.items() if 2 * times > len(names) and len(names) - times <= OFTEN}


def _parameter(parameter: dict[str, Any], shared: dict[str, str], usual: str) -> str:
    """Its name, what it means where that does not stand at the head, the values it may have, and its default."""
    name, schema, meaning = parameter["name"], parameter.get("schema", {}), _meaning(parameter)
    notes = [meaning] if meaning and not shared.get(name, "").startswith(meaning) else []
    if schema.get("default") not in (None, "", False) and not (name == "limit" and _default(parameter) == usual):
        notes.append(f"default {schema['default']}")
    if parameter.get("required") and parameter["in"] == "query":
        notes.append("required")
    return f"`{name}`" + (f" ({'; '.join(notes)})" if notes else "")


def _default(parameter: dict[str, Any]) -> str:
    return str(parameter.get("schema", {}).get("default", ""))


def _meaning(parameter: dict[str, Any]) -> str:
    schema = parameter.get("schema", {})
    values = schema.get("enum") or next((one["enum"] for one in schema.get("anyOf", ()) if "enum" in one), ())
    return str(parameter.get("description") or ", ".join(map(str, values))).strip()


def _metrics() -> Iterator[str]:
    from memctl.api.http.metrics import METRICS

    yield "# Metrics\n"
    yield "At `/metrics` of the API, in the text format of Prometheus, with its token or a key of scope `operate`."
    yield "`infra/deploy/grafana` has a dashboard over them, `infra/deploy/prometheus` rules for alerts.\n"
    yield "In brackets are the labels.\n"
    for kind in dict.fromkeys(metric.kind for metric in METRICS):
        yield f"## {kind.capitalize()}s\n"
        for metric in METRICS:
            if metric.kind == kind:
                labels = ", ".join(f"`{label}`" for label in metric.labels)
                yield f"- `memctl_{metric.name}`{f' ({labels})' if labels else ''}: {' '.join(metric.meaning.split())}"
        yield ""


if __name__ == "__main__":
    os.environ.setdefault("MEMCTL_DATA_DIR", "/nonexistent")
    if "--check" in sys.argv[1:]:
        wrong = stale()
        sys.exit(f"run `make docs`: {', '.join(wrong)} are not what the code says" if wrong else 0)
    PAGES.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (PAGES / name).write_text(text, encoding="utf-8")
