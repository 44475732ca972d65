"""The pages of the documentation, and the commands that stand in them."""

from __future__ import annotations

import inspect
import itertools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from memctl.cli.commands import GROUPS
from memctl.cli.main import memctl

ROOT = Path(__file__).parents[1]

PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "infra" / "deploy" / "README.md")
    if "reference" not in path.parts and path.name != "CHANGELOG.md"
)
"""All but what is written from the code, and what tells of the past."""

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`(memctl [^`\n]+)`")
_SECONDS = re.compile(r"\b\d+(\.\d+)? (?=s\b)|\d+(?= events/s)|(?<=\()[\d.]+ MB/s")
_MOMENT = re.compile(r"\b\d{1,2} [A-Z][a-z]{2} \d\d:\d\d\b|\b(?:today|yesterday) \d\d:\d\d\b|\b\d{4}-\d\d-\d\d\b")
_DIGEST = re.compile(r"\b[0-9a-f]{12}\b")
_ID = re.compile(r"\b[0-9a-f]{8}\b")
_SCORE = re.compile(r"\b(?:high|suggested|none) +[01]\.\d\d\b")
"""Of search: it differs until a memory is embedded, and so does its class."""


class Step(NamedTuple):
    """A command and what a page says that it prints."""

    command: str
    printed: str


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(page: Path, *languages: str) -> Iterator[str]:
    for language, block in _FENCE.findall(text_of(page)):
        if language in languages:
            yield block


def steps(page: Path) -> Iterator[Step]:
    """The commands of a page's ```console blocks, each with what stands below it."""
    for block in blocks(page, "console"):
        for told in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = told.replace("\\\n", " ").partition("\n")
            yield Step(command, printed)


def commands(page: Path) -> Iterator[list[str]]:
    """Every call of memctl in a page's blocks, as words without `memctl` itself."""
    for step in steps(page):
        yield from _calls(step.command)
    for block in blocks(page, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            yield from _calls(line)


class Block(list[str]):
    """The lines of a page's block of commands, without what they print and what is said about them."""


def in_order(page: Path) -> Iterator[Block | str]:
    """A page's blocks of commands, and the calls of memctl that its text names, without `memctl`, as they follow."""
    text, at = text_of(page), 0
    for fence in [*_FENCE.finditer(text), None]:
        for told in _INLINE.findall(text[at : fence.start() if fence else None]):
            yield from (call.partition(" ")[2] for call in told.split("; "))
        if fence is None:
            return
        at = fence.end()
        if fence[1] == "sh":
            lines = (line.partition("  #")[0].strip() for line in fence[2].replace("\\\n", " ").splitlines())
            yield Block(line for line in lines if line)
        elif fence[1] == "console":
            yield Block(told.partition("\n")[0] for told in re.split(r"^\$ ", fence[2], flags=re.MULTILINE)[1:])


def examples(help: str) -> Iterator[list[str]]:
    """Every call of memctl among the examples of a command's help, as words without `memctl` itself."""
    for block in re.findall(r"^\x08\n((?:.+\n?)+)", inspect.cleandoc(help), re.MULTILINE):
        for line in block.splitlines():
            yield from _calls(line)


GROUPED = {(name,) for name in GROUPS}
"""Their commands are the root's as well, by their names alone."""


def everything(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """A command and all below it, with the words that call each."""
    yield path, command
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)) if path[:1] not in GROUPED else ():
            inner = command.get_command(click.Context(command), name)
            assert inner is not None
            yield from everything(inner, (*path, name))


def mentions(page: Path) -> Iterator[list[str]]:
    """Every `memctl …` in a page's running text, as words without `memctl` itself."""
    for told in _INLINE.findall(_FENCE.sub("", text_of(page))):
        for call in told.split("; "):
            yield call.split()[1:]


def _calls(line: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    call: list[str] = []
    for word in [*lexer, ";"]:
        if not set(word) <= set("|&;"):
            call.append(word)
            continue
        while call and re.fullmatch(r"\w+=.*|sudo|docker|compose|exec|-u", call[0]):
            call = call[1:]
        if call and call[0].rpartition("/")[2] == "memctl":
            yield list(itertools.takewhile(lambda each: not set(each) & set("<>"), call[1:]))
        call = []


def reads_as(printed: str, shown: str) -> bool:
    """Whether what was printed is what a page shows: `…` stands for anything, and figures that differ from run to run
    (seconds, moments, digests, ids, scores) for any of their kind."""
    parts = [re.escape(part) for part in _evened(shown).split("…")]
    return re.fullmatch(".*".join(parts).replace(r"\ \n", r"\n"), _evened(printed), re.DOTALL) is not None


def _evened(text: str) -> str:
    for kind, pattern in (("S ", _SECONDS), ("MOMENT", _MOMENT), ("DIGEST", _DIGEST), ("ID", _ID), ("SCORE", _SCORE)):
        text = pattern.sub(kind, text)
    lines = [re.sub(r"\s+", " ", line).strip() for line in text.strip().splitlines()]
    return "\n".join(line for line in lines if line)


def parsed(words: list[str]) -> None:
    """Raise click's own error where memctl would not take these words."""
    command: click.Command = memctl
    context = click.Context(memctl, info_name="memctl")
    while isinstance(command, click.Group):
        if not words or words[0].startswith("-"):
            return
        inner = command.get_command(context, words[0])
        if inner is None:
            raise click.UsageError(f"there is no command {words[0]!r}")
        command, words = inner, words[1:]
        context = click.Context(command, context, info_name=command.name)
    values, _, _ = command.make_parser(context).parse_args(list(words))
    for parameter in command.params:
        value = values.get(parameter.name or "")
        if parameter.required and parameter.value_is_missing(value) and "-h" not in words and "--help" not in words:
            raise click.UsageError(f"{parameter.human_readable_name} is missing")
        if not parameter.value_is_missing(value) and isinstance(
            parameter.type, click.Choice | click.IntRange | click.FloatRange
        ):
            parameter.type_cast_value(context, value)
