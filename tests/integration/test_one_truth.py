"""What two surfaces show of one thing is equal, over real sessions: lists, a project's page, figures, metrics."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import pytest
from doors import door_to
from histories import events_of, real_sessions

from memctl.api.http.metrics import of_worth
from memctl.api.queries import memories, work
from memctl.api.queries.endings import uses_of
from memctl.api.queries.project import project_page, projects
from memctl.api.queries.stats import counts, totals_of
from memctl.api.reading.places import Places, places_of, projects_of
from memctl.api.reading.reader import Reader
from memctl.infra.log.append import append
from memctl.infra.readmodels import generations

EVERYWHERE = Places(None, "everywhere", None)


@pytest.fixture(scope="module")
def reader(postgres_server: str, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with (
        door_to(postgres_server, migrated_template, tmp_path_factory.mktemp("data"), location="") as door,
        real_sessions() as folder,
    ):
        generations.ensure_live(door.connection, 2)
        for events in islice(events_of(folder), 0, None, 3):
            append(door.connection, 1, events)
        yield door.known()


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
