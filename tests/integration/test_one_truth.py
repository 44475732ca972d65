"""What two surfaces show of one thing is equal, over real sessions: lists, a project's page, figures, metrics."""

from __future__ import annotations

import html
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, get_args
from urllib.parse import quote

import pytest
from doors import Door, door_to
from histories import events_of, real_sessions
from starlette.testclient import TestClient

from memctl.api.checks.health import Servers, health
from memctl.api.http.metrics import of_worth
from memctl.api.queries import memories, work
from memctl.api.queries.claims import insights
from memctl.api.queries.endings import uses_of
from memctl.api.queries.project import project_page, projects
from memctl.api.queries.stats import counts, totals_of
from memctl.api.reading.places import Places, places_of, projects_of
from memctl.api.reading.reader import Reader, Readers
from memctl.api.search.engine import Engine
from memctl.api.server.application import application
from memctl.api.server.auth import Guard, names_of
from memctl.api.viewer import lists, trends
from memctl.api.viewer.sign_in import Browsers
from memctl.api.write.remote_ingest import RemoteIngest
from memctl.domain.knowledge.memory import MemoryKind
from memctl.infra.embedders import NONE, Embedders
from memctl.infra.log.append import append
from memctl.infra.readmodels import generations

EVERYWHERE = Places(None, "everywhere", None)


@pytest.fixture(scope="module")
def door(postgres_server: str, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with (
        door_to(postgres_server, migrated_template, tmp_path_factory.mktemp("data"), location="") as door,
        real_sessions() as folder,
    ):
        generations.ensure_live(door.connection, 2)
        for events in islice(events_of(folder), 0, None, 3):
            append(door.connection, 1, events)
        yield door


@pytest.fixture(scope="module")
def reader(door: Door) -> Reader:
    return door.known()


@pytest.fixture(scope="module")
def served(door: Door, reader: Reader) -> Iterator[TestClient]:
    """The API and the viewer over the same memory, asked by its owner."""
    settings, readers = door.commands.settings, Readers(door.url, "default")
    engine = Engine("http://127.0.0.1:1", "", Embedders(NONE))
    app = application(readers, engine, door.commands, Browsers("token"), RemoteIngest(settings, readers))
    guard = Guard(app, "token", names_of("http://127.0.0.1"), lambda _: None)
    yield TestClient(guard, "http://127.0.0.1", headers={"Authorization": "Bearer token"})
    engine.close()
    readers.close()


def listed(ask: Callable[..., Any], reader: Reader, places: Places) -> list[Any]:
    """All items of a list, page by page."""
    found: list[Any] = []
    cursor = None
    while True:
        page = ask(reader, places, limit=50, cursor=cursor)
        found += page.items
        if (cursor := page.next) is None:
            return found


def places(reader: Reader) -> list[Places]:
    return [places_of(reader, item.id) for item in projects(reader).items]


def test_the_page_of_a_project_counts_what_its_lists_hold(reader: Reader) -> None:
    now = datetime.now(UTC)
    seen = 0
    for project in projects_of(reader).all:
        where = places_of(reader, project.id)
        figures = project_page(reader, project, now).stats
        episodes = listed(lambda *given, **how: work.episodes(*given, **how), reader, where)
        assert figures.sessions == len(listed(memories.sessions, reader, where))
        assert figures.episodes == len(episodes)
        assert figures.outcomes == Counter(each.outcome for each in episodes)
        assert figures.types == Counter(each.task_type for each in episodes)
        seen += figures.episodes
    assert seen > 50


def test_figures_of_how_work_ended_are_those_of_the_pages_and_of_the_metrics(reader: Reader) -> None:
    now = datetime.now(UTC)
    everywhere = totals_of(reader, EVERYWHERE)
    summed: Counter[str] = Counter()
    for project in projects_of(reader).all:
        where = places_of(reader, project.id)
        totals, figures = totals_of(reader, where), project_page(reader, project, now).stats
        summed.update(totals)
        for name, outcome in (("succeeded", "success"), ("failed", "failure"), ("partial", "partial")):
            assert totals[f"episodes_{name}"] == figures.outcomes.get(outcome, 0)
        known = sum(totals[f"episodes_{name}"] for name in ("succeeded", "failed", "partial"))
        assert figures.success_rate == (round(totals["episodes_succeeded"] / known, 3) if known else None)
        assert counts(reader, where).totals == totals
    for name in ("prompts", "errors", "errors_resolved", "episodes_succeeded", "episodes_unknown", "files_changed"):
        assert summed[name] == everywhere[name] > 0, name
    samples = of_worth(everywhere, uses_of(reader))
    ended = [sample for sample in samples if sample.name == "episodes"]
    assert sum(each.value for each in ended) == sum(
        everywhere[f"episodes_{name}"] for name in ("succeeded", "failed", "partial")
    )


def test_what_the_days_count_is_what_the_sessions_count(reader: Reader) -> None:
    totals = totals_of(reader, EVERYWHERE)
    sessions = listed(memories.sessions, reader, EVERYWHERE)
    for name, of_session in (
        ("prompts", "prompts"),
        ("tool_uses", "tool_calls"),
        ("errors", "errors"),
        ("errors_resolved", "fixes"),
        ("tokens_in", "tokens_in"),
        ("lines_added", "lines_added"),
    ):
        assert totals[name] == sum(getattr(each, of_session) for each in sessions), name


def test_the_totals_of_some_days_are_a_part_that_adds_up(reader: Reader) -> None:
    whole = totals_of(reader, EVERYWHERE)
    times = sorted(moment for each in listed(memories.sessions, reader, EVERYWHERE) if (moment := each.last_at))
    middle = int(datetime.fromisoformat(times[len(times) // 2]).timestamp() * 1_000_000)
    earlier, later = totals_of(reader, EVERYWHERE, before=middle), totals_of(reader, EVERYWHERE, since=middle)
    for name, count in whole.items():
        assert earlier[name] + later[name] == count, name
    assert 0 < earlier["prompts"] < whole["prompts"]
    assert 0 < earlier["episodes_succeeded"] < whole["episodes_succeeded"]


def test_a_task_is_said_to_have_ended_as_the_last_of_its_episodes_did(reader: Reader) -> None:
    of_task: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for each in listed(lambda *given, **how: work.episodes(*given, **how), reader, EVERYWHERE):
        of_task[each.location, each.canonical].append(each)
    tasks = listed(work.tasks, reader, EVERYWHERE)
    assert len(tasks) == len(of_task)
    for task in tasks:
        last = max(of_task[task.location, task.canonical], key=lambda each: each.ended_at or each.started_at)
        assert task.outcome == last.outcome
        assert task.task_type in ("unknown", last.task_type) or last.task_type == "unknown"


# --- every figure that is shown, by the surface that shows it ---

Shown = dict[str, dict[str, float]]
"""Values by what they are of, and by surface."""

NUMBER = r"[+−]?[\d,]+(?:\.\d+)?"
TOTALS = {
    "prompts": "prompts", "uses of tools": "tool_uses", "errors resolved": "errors_resolved errors",
    "lines": "lines_added lines_removed", "tokens in, out": "tokens_in tokens_out", "tokens cached": "tokens_cached",
    "events": "events", "memories": "memories", "sessions": "sessions", "mark": "log mark",
    "to write, to embed": "to_write to_embed", "episodes": "episodes",
}  # fmt: skip
"""What the viewer's figures are of."""


def numbers(text: str) -> list[float]:
    return [float(each.strip("+−").replace(",", "")) for each in re.findall(NUMBER, text)]


def figures_on(page: str) -> Iterator[tuple[str, float]]:
    for label, value in re.findall(r"<dt>([^<]+)</dt><dd>([^<]+)</dd>", page):
        yield from zip(
            TOTALS.get(label, "").split(" ") if label != "mark" else ["log mark"], numbers(value), strict=False
        )


def rows_on(page: str) -> dict[str, list[float]]:
    """The tables of a page: numbers by the row's name."""
    found = re.findall(r'<tr><th scope="row">([^<]+)</th>(.*?)</tr>', page)
    return {name: numbers(re.sub(r"<[^>]+>", " ", cells)) for name, cells in found}


def drawn_on(page: str) -> Iterator[tuple[str, list[tuple[str, float]]]]:
    """The plots of a page by their labels: of each bar, what hovering says of its series."""
    for label, bars in re.findall(r'<svg [^>]*aria-label="([^"]+)".*?>(.*?)</svg>', page, re.DOTALL):
        titles = dict.fromkeys(re.findall(r"<title>week of [^:]+: ([^<]+)</title>", bars))
        weeks = dict.fromkeys(re.findall(r"<title>(week of [^<]+)</title>", bars))
        assert titles or not bars.strip()
        parts = [re.findall(r"(?:^|, )([^,]+?) ([\d,]*\d)(?=, |$)", week.partition(": ")[2]) for week in weeks]
        yield label, [(name, float(value.replace(",", ""))) for week in parts for name, value in week]


def everything_shown(client: TestClient, reader: Reader) -> Shown:
    shown: Shown = defaultdict(dict)

    def put(name: str, surface: str, value: float) -> None:
        if name:
            shown[name][surface] = value

    def page(path: str) -> str:
        answer = client.get(path)
        assert answer.status_code == 200, path
        return html.unescape(re.sub(r'<data value="(\d+)"[^>]*>[^<]*</data>', r"\1", answer.text))

    stats = client.get("/v1/stats?project=*").json()
    twice = set(stats["totals"]) & set(stats["read_models"])
    assert not twice, f"{twice}: a read model and a field of DayStats share a name, and one page shows both: rename one"
    for name, value in stats["totals"].items():
        put(name, "stats", value)
    for name, value in stats["read_models"].items():
        put(name, "stats, read models", value)
    put("events", "stats", stats["events"]["total"])
    put("events", "stats, by type", sum(stats["events"]["by_type"].values()))
    put("log mark", "stats", stats["log"]["mark"])
    put("to_write", "stats", stats["outbox"]["to_write"])
    put("to_embed", "stats", stats["outbox"]["waiting_for_dense"])
    ended = sum(value for name, value in stats["totals"].items() if name in ENDED)

    look = health(reader, Servers())
    for name, value in (("log mark", look.mark), ("to_write", look.to_write), ("to_embed", look.to_embed)):
        put(name, "status", value)

    metrics = dict(re.findall(r"^(memctl_.+) (\S+)$", client.get("/metrics").text, re.MULTILINE))
    put("log mark", "metrics", summed(metrics, "memctl_log_mark"))
    put("to_write", "metrics", summed(metrics, "memctl_points_waiting"))
    put("to_embed", "metrics", summed(metrics, "memctl_dense_waiting"))
    put("errors_resolved", "metrics", summed(metrics, "memctl_fixes{"))
    put("work with a known end", "metrics", summed(metrics, "memctl_episodes{"))
    put("work with a known end", "stats", ended)

    for path in ("/", "/sessions", "/engine"):
        for name, value in figures_on(page(path)):
            put(name, path, value)
    engine = rows_on(page("/engine"))
    put(
        "memories",
        "/engine, by kind",
        sum(engine[kind][0] for kind in map(named, get_args(MemoryKind)) if kind in engine),
    )
    for name, count in stats["read_models"].items():
        put(name, "/engine, read models", engine[named(name)][0])
        assert count == engine[named(name)][0]

    for a_list, name in ((lists.SESSIONS, "sessions"), (lists.WORK, "episodes"), (lists.BUGS, "bug_patterns"),
                         (lists.KNOWLEDGE, "claims"), (lists.HINDSIGHT, "needs")):  # fmt: skip
        there = page(f"/{a_list.name}")
        put(name, f"/{a_list.name}", numbers(re.findall(r'<span class="count">([^<]+)</span>', there)[0])[0])
        put(name, f"/{a_list.name}, as a file", len(client.get(f"/{a_list.name}?as=json").json()))
    claims = listed(lambda *given, **how: insights(*given, **{**how, "limit": 3}), reader, EVERYWHERE)
    for level in (1, 2, 3, 4):
        put(f"claims at L{level}", "insights", sum(each.level >= level for each in claims))
        put(
            f"claims at L{level}",
            "/engine",
            next(row[0] for name, row in engine.items() if name.startswith(f"L{level} ")),
        )
    put("claims", "insights", len(claims))

    report = client.get("/v1/hindsight?project=*&limit=1").json()
    table = rows_on(page("/hindsight"))
    for each in report["counts"]:
        for recalled, count in (("yes", each["recalled"]), ("no", each["count"] - each["recalled"])):
            label = f'memctl_hindsight{{space="default",kind="{each["kind"]}",recalled="{recalled}"}}'
            put(f"{each['kind']}, recalled: {recalled}", "hindsight", count)
            put(f"{each['kind']}, recalled: {recalled}", "metrics", float(metrics[label]))
        if each["count"]:
            assert table[each["kind"]][:2] == [each["count"], each["recalled"]]
    put("needs", "hindsight", sum(each["count"] for each in report["counts"]))
    put("minutes lost", "hindsight", sum(each["seconds"] for each in report["counts"]) / 60)

    for label, bars in drawn_on(page("/trends")):
        sums: Counter[str] = Counter()
        for series, value in bars:
            sums[series] += value
        match label:
            case "Errors a week":
                put("errors", "/trends", sums.total())
                put("errors_seen_before", "/trends", sums["seen before"])
            case "Errors resolved a week":
                put("errors_resolved", "/trends", sums["resolved"])
            case "Needs a week that memory held":
                put("needs", "/trends", sums.total())
            case "Work a week that ended in a known way":
                put("work with a known end", "/trends", sums.total())
                put("episodes_without_memory", "/trends", sums["without memory"])
            case "Memories":
                put("memories", "/trends", bars[-1][1])
            case "Prompts and uses of tools a week":
                put("prompts", "/trends", sums["prompts"])
                put("tool_uses", "/trends", sums["tools"])
            case "Tokens a week":
                put("tokens_in", "/trends", sums["in"])
                put("tokens_out", "/trends", sums["out"])
            case other:
                assert other.startswith("Minutes a week"), (
                    f"the chart '{other}' is compared with nothing: add a `case` for it here, which says by"
                    " `put(figure, '/trends', value)` what another surface says of the same"
                )

    sums = Counter()
    for project in projects(reader).items:
        path = quote(project.id, safe="")
        there = page(f"/projects/{path}")
        of_it = dict(figures_on(there))
        answer = client.get(f"/v1/project?project={path}").json()["stats"]
        assert (of_it["sessions"], of_it["episodes"]) == (answer["sessions"], answer["episodes"])
        sums.update({"sessions": of_it["sessions"], "episodes": of_it["episodes"]})
    for name, value in sums.items():
        put(name, "/projects, all together", value)
    lanes = client.get("/v1/activity?project=*&since=1971-01-01T00:00:00Z").json()["spans"]
    for name, of in (
        ("sessions", "sessions"),
        ("prompts", "prompts"),
        ("errors", "errors"),
        ("errors_resolved", "fixes"),
    ):
        put(name, "timeline", sum(span[of] for span in lanes))
    return shown


def test_every_series_of_a_chart_has_a_colour_of_its_own(reader: Reader) -> None:
    sheet = (Path(trends.__file__).parent / "static" / "viewer.css").read_text(encoding="utf-8")
    for chart in trends.trends(reader, EVERYWHERE):
        for number, name in enumerate(chart.series, 1):
            missing = [rule for rule in (f".key.s{number} {{", f"rect.s{number} {{") if rule not in sheet]
            assert not missing, f"'{name}' of '{chart.label}' has no colour: write `{missing}` in viewer.css"


ENDED = {"episodes_succeeded", "episodes_failed", "episodes_partial"}


def named(name: str) -> str:
    return name.replace("_", " ")


def summed(metrics: dict[str, str], prefix: str) -> float:
    return sum(float(value) for name, value in metrics.items() if name.startswith(prefix))


def test_every_figure_that_two_surfaces_show_is_the_same_on_each(served: TestClient, reader: Reader) -> None:
    shown = everything_shown(served, reader)
    twice = {name: values for name, values in shown.items() if len(values) > 1}
    assert {name: values for name, values in twice.items() if len(set(values.values())) > 1} == {}
    assert len(twice) > 30
    assert sum(map(len, twice.values())) > 80
    assert sum(any(values.values()) for values in twice.values()) > 25
