"""What an agent or a person asks while at work: four kinds of questions, and guidance for a task."""

import sys
from typing import Any

import click

from memctl.api.reading.advice import Answer, TaskGuidance
from memctl.cli.ask.read import print_bug, print_nearest, print_results
from memctl.cli.connection import NOTHING_FOUND, looking_back, placed, running
from memctl.cli.output import notice, print_json, print_lines
from memctl.cli.pages import OneOf, Reading, in_json, print_scope, reading
from memctl.domain.retrieval.guidance import Guidance

KINDS = ("similar_error", "how_to", "convention", "past_approach")


class _Kind(OneOf):
    """The kind of a question, which stands before it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if " " in str(value).strip():
            kinds = ", ".join(self.choices)
            self.fail(f"the kind of question comes first, one of {kinds}. `memctl search` takes any.", param, ctx)
        return super().convert(value, param, ctx)


@click.command()
@click.argument("kind", type=_Kind(KINDS))
@click.argument("text", nargs=-1, required=True)
@click.option("--session", default="", help="The session that asks: an error that it has met before counts first.")
@reading(limit=5, most=20)
def ask(ask: Reading, kind: str, text: tuple[str, ...], session: str) -> None:
    """Ask one kind of question; learn which tier of memory answered.

    similar_error: was an error like this met before, and what resolved it; how_to: how is this done; convention: what
    is agreed on here; past_approach: how did a task like this go. TEXT `-` is read from stdin.

    \b
    memctl ask how_to "export the totals as csv"
    memctl ask similar_error "TypeError: unsupported operand type(s) for *"
    npm test 2>&1 | memctl ask similar_error -
    """
    words = " ".join(text)
    if words == "-":
        words = sys.stdin.buffer.read(50_000).decode("utf-8", "replace")
    if not words.strip():
        raise click.UsageError("the text is empty")
    with running() as client:
        received = client.ask(kind, words, session=session, **placed(ask.project), limit=ask.limit)
    answer = received.value
    if ask.as_json:
        print_json(received.json)
    else:
        print_scope(answer.scope)
        notice(_heading(answer))
        if error := answer.error:
            print_lines(f"earlier: {error.message}")
            if error.resolution:
                print_lines(f"what was done then: {error.resolution}")
        if answer.source != "none" and (course := answer.course):
            print_lines(course.approach or course.reason)
        for hit in answer.bugs:
            print_bug(hit)
        (print_nearest if answer.source == "none" else print_results)(answer.results)
    if answer.source == "none":
        raise click.exceptions.Exit(NOTHING_FOUND)


def _heading(answer: Answer) -> str:
    """What was found, in a line above it."""
    said = f"{answer.message[:1].upper()}{answer.message[1:]}"
    if answer.source == "none":
        return f"{said}; nearest:" if answer.results else f"{said}."
    return "Done before:" if answer.source == "episodic_memory" and answer.results else f"{said}:"


@click.command()
@click.argument("task", nargs=-1, required=True)
@click.option("--project", metavar="NAME|PATH|*", help="Which project; without it, the one this directory belongs to.")
@looking_back
@in_json
@click.pass_context
def guidance(context: click.Context, task: tuple[str, ...], project: str | None, as_json: bool) -> None:
    """Advice for a TASK: what went well in tasks like it, what did not, what is avoided here, and how sure that is.

    \b
    memctl guidance "fix the rounding of invoice totals"
    """
    with running() as client:
        received = client.guidance(" ".join(task), **placed(project))
    answer = received.value
    advice = answer.guidance
    if as_json:
        print_json(received.json)
    else:
        print_scope(answer.scope)
        _print_advice(advice)
        _print_ground(answer)
    if not advice.sources and not advice.things_to_avoid:
        if not as_json:
            notice("nothing like it is known")
        context.exit(NOTHING_FOUND)


def _print_advice(advice: Guidance) -> None:
    if advice.suggested_approach:
        print_lines(f"approach: {advice.suggested_approach}")
    for heading, lines in (
        ("try", advice.things_to_try), ("avoid", advice.things_to_avoid), ("expect", advice.expected_challenges),
    ):  # fmt: skip
        for each in lines:
            print_lines(f"{heading}: {each}")
    print_lines(f"complexity: {advice.estimated_complexity}; confidence: {advice.confidence:.2f}")


def _print_ground(answer: TaskGuidance) -> None:
    """What the advice rests on, and what holds here whatever the task."""
    for case in answer.similar_cases:
        print_lines(f"like it: {case.description} ({case.outcome})")
    here = answer.project
    for heading, lines in (
        ("convention", here.conventions if here else []), ("file", here.hotspots if here else []),
        ("liked", answer.preferences),
    ):  # fmt: skip
        for each in lines:
            print_lines(f"{heading}: {each}")
