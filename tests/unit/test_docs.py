"""The documentation names what there is: commands, options, tests, files, targets, settings, and pages."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import click
import pytest
from documents import PAGES, ROOT, commands, everything, examples, mentions, parsed, reads_as, text_of

from memctl.cli.commands import COMMANDS
from memctl.cli.main import memctl
from memctl.infra.settings_model import Settings

TESTS = ROOT / "tests"
_IN_CODE = re.compile(r"`([^`\n]+)`")
MADE_BY_THE_READER = {"projections/task_endings.py", "api/queries/task_endings.py", "domain/projects/place_purpose.py"}
_BLOCK = re.compile(r"```\w+\n.*?```", re.DOTALL)
_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]+)?(#[^)\s]+)?\)")


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_every_command_in_a_block_is_one_that_memctl_takes() -> None:
    for page in PAGES:
        for words in commands(page):
            try:
                parsed([word for word in words if word != "…"])
            except click.UsageError as why:
                pytest.fail(f"{named(page)}: memctl {' '.join(words)}: {why.message}")


def test_every_help_has_examples_of_its_command_that_memctl_takes_and_fits_80_columns() -> None:
    for path, command in everything(memctl):
        name = f"memctl {' '.join(path)} --help"
        told = list(examples(command.help or ""))
        assert any(tuple(words[: len(path)]) == path for words in told), (
            f"{name} has no example: write `memctl {' '.join(path)} …` below a line of \\b in its docstring"
        )
        for words in told:
            try:
                parsed(words)
            except click.UsageError as why:
                pytest.fail(f"{name}: memctl {' '.join(words)}: {why.message}")
        shown = command.get_help(click.Context(command, info_name="memctl"))
        assert [line for line in shown.splitlines() if len(line) > 80] == [], name


def test_no_page_grows_beyond_what_one_reads() -> None:
    for page, most in (("CHANGELOG.md", 6_000), ("README.md", 8_000)):
        size = len((ROOT / page).read_bytes())
        assert size <= most, f"{page} has {size} bytes, and {most} is the most: say something in it more briefly"
    words = sum(len(text_of(page).split()) for page in PAGES if "docs" in page.relative_to(ROOT).parts)
    assert words < 45_000, f"docs has {words} words: replace, do not add"


def test_the_changelog_names_every_command() -> None:
    changelog = text_of(ROOT / "CHANGELOG.md")
    missing = [name for name in COMMANDS if not re.search(rf"\b{name}\b", changelog)]
    assert not missing, f"name {missing} in CHANGELOG.md, where it says what a user can do"


ROOMS = ("domain", "projections", "infra", "workers", "api", "cli")
CODE = [file for room in ROOMS for file in sorted((ROOT / room).rglob("*.py"))]


def test_every_command_and_option_in_the_text_exists() -> None:
    """Of programs too: what a message advises is to be had."""
    for page in (*PAGES, *CODE):
        for words in mentions(page):
            command: click.Command = memctl
            context = click.Context(memctl)
            for word in words:
                if isinstance(command, click.Group) and re.fullmatch(r"[a-z][a-z-]*(\|[a-z-]+)*", word):
                    for name in word.split("|"):
                        found = command.get_command(context, name)
                        assert found is not None, f"{named(page)}: memctl {' '.join(words)}: there is no {name}"
                    command = found
                elif word.startswith("--"):
                    options = {name for parameter in command.params for name in parameter.opts} | {
                        "--help",
                        "--version",
                    }
                    option = re.split(r"[=\])…,]", word)[0]
                    assert option in options, f"{named(page)}: memctl {' '.join(words)}: there is no {option}"


def test_every_link_leads_somewhere() -> None:
    for page in PAGES:
        for path, anchor in _LINK.findall(text_of(page)):
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), f"{named(page)}: {path} is not there"
            if anchor and target.suffix == ".md":
                headings = re.findall(r"^#+ (.+)$", text_of(target), re.MULTILINE)
                anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
                assert anchor[1:] in anchors, f"{named(page)}: {path}{anchor} is no heading"


def test_every_test_and_file_that_is_named_exists() -> None:
    for page in PAGES:
        for code in _IN_CODE.findall(text_of(page)):
            if found := re.fullmatch(
                r"(?:tests/)?((?:unit|integration|faults|e2e|bench)/)?(test_\w+\.py)(?:::(.+))?", code
            ):
                folder, file, test = found.groups()
                files = [path for path in TESTS.rglob(file) if not folder or path.parent.name == folder.rstrip("/")]
                assert files, f"{named(page)}: {code}: no such test file"
                if test:
                    words = [part for part in test.split("…") if part]
                    names = re.findall(r"^def (test_\w+)", files[0].read_text(encoding="utf-8"), re.MULTILINE)
                    assert any(all(word in name for word in words) for name in names), (
                        f"{named(page)}: {code}: no such test"
                    )
            elif re.fullmatch(r"(domain|projections|infra|workers|api|cli|tests|docs)/[\w./-]+", code):
                assert (ROOT / code).exists() or code in MADE_BY_THE_READER, f"{named(page)}: {code}: no such file"
            elif found := re.fullmatch(r"make ([a-z-]+)(?: [A-Z]+=.*)?", code):
                makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
                assert f"\n{found[1]}:" in makefile, f"{named(page)}: {code}: no such target"


def test_every_module_that_is_named_exists() -> None:
    for page in PAGES:
        for code in _IN_CODE.findall(text_of(page)):
            if re.fullmatch(r"(memctl\.)?(domain|projections|infra|workers|api|cli)(\.\w+)+", code):
                assert importable("memctl." + code.removeprefix("memctl.")), (
                    f"{named(page)}: {code}: no such module, nor a name in one"
                )


def importable(name: str) -> bool:
    module, _, attribute = name.rpartition(".")
    try:
        return hasattr(importlib.import_module(module), attribute) or bool(importlib.import_module(name))
    except ImportError:
        return False


def test_every_setting_that_is_named_exists() -> None:
    for page in PAGES:
        for name in re.findall(r"MEMCTL_([A-Z0-9_]+)", text_of(page)):
            of_tests = name.startswith("TEST_") or name == "OFF"
            assert of_tests or name.partition("__")[0].lower() in Settings.model_fields, (
                f"{named(page)}: MEMCTL_{name} is no setting"
            )


def test_every_page_is_reached_from_the_index() -> None:
    reached: set[Path] = set()
    left = [ROOT / "README.md", ROOT / "docs" / "README.md"]
    while left:
        page = left.pop()
        if page in reached or page.suffix != ".md" or not page.exists():
            continue
        reached.add(page)
        for path, _ in _LINK.findall(text_of(page)):
            target = (page.parent / path).resolve()
            left += sorted(target.glob("*.md")) if target.is_dir() else [target]
    assert [named(page) for page in PAGES if page not in reached] == []


@pytest.mark.parametrize(
    ("translated", "original"), [("docs/ko/tutorial.md", "docs/tutorial.md"), ("docs/ko/README.md", "README.md")]
)
def test_a_translation_shows_the_blocks_of_its_original_in_their_order(translated: str, original: str) -> None:
    left = iter(_BLOCK.findall(text_of(ROOT / original)))
    shown = _BLOCK.findall(text_of(ROOT / translated))
    assert [block for block in shown if block not in left] == []
    if original != "README.md":
        assert list(left) == [], "a block of the original is left out"
    assert len(shown) > 1


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["frobnicate"], "no command"),
        (["search", "--projet", "x", "y"], "projet"),
        (["search"], "missing"),
        (["ask", "nonsense", "x"], "nonsense"),
        (["dlq", "lst"], "no command"),
    ],
)
def test_what_memctl_would_refuse_is_seen(words: list[str], why: str) -> None:
    with pytest.raises(click.UsageError, match=why):
        parsed(words)


def test_what_is_printed_is_compared_but_for_what_differs_each_time() -> None:
    assert reads_as("kept 3 rows in 1.2 s\nid  42\nmore\n", "kept 3 rows in 0.4 s\nid  …\n…\n")
    assert not reads_as("kept 3 rows in 1.2 s\n", "kept 4 rows in 1.2 s\n")
    assert not reads_as("kept 3 rows\nand more\n", "kept 3 rows\n")


def test_the_tables_of_the_scaling_page_are_those_that_its_model_computes() -> None:
    from bench import scaling

    page = text_of(scaling.PAGE)
    assert scaling.written(page) == page, "run `python tests/bench/scaling.py --write`"


def test_what_the_model_of_scaling_starts_from_is_what_the_pages_say_was_measured() -> None:
    from bench import scaling

    shown = text_of(ROOT / "docs" / "examples.md")
    measured = text_of(ROOT / "docs" / "internals" / "benchmarks.md").replace("\n", " ")
    assert f"\nmemories {scaling.REAL_MEMORIES:>20} rows" in shown
    assert f"\n{scaling.REAL_EVENTS:,} events, nothing missing" in shown
    assert f"quiet cores: {scaling.REPLAY_WALL:.0f} s" in measured
    fold, postgres = scaling.FOLD_CPU * 1e6, scaling.POSTGRES_CPU * 1e6
    assert f"{fold:.0f} µs of memctl's CPU an event and {postgres:.0f} of Postgres's" in measured
    assert "p50 128, p95 235, p99 278, at most" in measured
    assert "128/278 ms" in text_of(scaling.PAGE)


def test_more_processors_help_as_far_as_a_replay_is_dealt_out() -> None:
    from bench import scaling

    spent = [scaling._replay(1e8, processors) for processors in (2, 16, 64)]
    assert spent[0] == 9_700
    assert spent[0] / 8 < spent[1] < spent[0] / 4
    assert spent[1] / 4 < spent[2] < spent[1]
    assert scaling.serial_share() < 0.05
    assert scaling.WORK[16][1] < 2 * scaling.WORK[1][1]


def test_the_digests_of_the_examples_are_those_on_record() -> None:
    recorded = json.loads((ROOT / "tests" / "data" / "digests.json").read_text())["agent-sessions"]
    examples = text_of(ROOT / "docs" / "examples.md")
    shown = re.findall(r"^(\w+) +(\d+) rows  ([0-9a-f]{12})  ([0-9a-f]{12})  equal$", examples, re.M)
    assert len(shown) > 5
    for name, rows, *both in shown:
        number, digest = recorded[name].split()
        assert (rows, set(both)) == (number, {digest[:12]}), name
