"""The house: which room may import which, and that what is packaged is what is there."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter, defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("domain", "projections", "infra", "workers", "api", "cli")
MAY_IMPORT = {
    "domain": {"domain"},
    "projections": {"domain", "projections"},
    "infra": {"domain", "projections", "infra"},
    "workers": {"domain", "projections", "infra", "workers"},
    "api": {"domain", "projections", "infra", "workers", "api"},
    "cli": set(ROOMS),
}
NOT_IN_DOMAIN = {"sqlalchemy", "psycopg", "redis", "rq", "qdrant_client", "socket", "subprocess", "time", "random"}


def sources(room: str) -> list[Path]:
    return sorted(path for path in (ROOT / room).rglob("*.py") if "__pycache__" not in path.parts)


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Of a file, the module first: every rule looks at all of them."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imports(path: Path) -> set[str]:
    """Every module that a file imports, also inside functions."""
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: import by full name, not relatively"
            found.add(node.module or "")
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_the_rooms_below_it(room: str) -> None:
    for path in sources(room):
        for module in imports(path):
            if module.split(".")[0] == "memctl":
                parts = module.split(".")
                assert len(parts) > 1, f"{path} imports the bare namespace"
                assert parts[1] in MAY_IMPORT[room], f"{path.relative_to(ROOT)} imports {module}"


DATABASE = {"psycopg", "sqlalchemy"}
STATEMENTS = {
    f"memctl.infra.{name}" for name in ("api_keys", "database", "event_writer", "log", "readmodels", "vectors")
}
"""What runs statements, or connects for them."""

WORDS_OF_AN_OUTAGE = {("cli/main.py", "memctl.infra.database"), ("cli/operate/keys.py", "memctl.infra.api_keys")}
"""What a command line takes from there: what an error means, and which scopes a key may have."""


def reached(path: Path) -> set[str]:
    """What a file imports, each name of a package beside the package itself."""
    found = imports(path)
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module in ("memctl.infra", "memctl.workers"):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found - {"memctl.infra", "memctl.workers"}


def test_the_command_line_runs_no_statement_and_opens_no_connection() -> None:
    for path in sources("cli"):
        file = str(path.relative_to(ROOT))
        for module in reached(path):
            assert module.split(".")[0] not in DATABASE, f"{file} imports {module}"
            below = {".".join(module.split(".")[:3])} & STATEMENTS
            assert not below or (file, module) in WORDS_OF_AN_OUTAGE, f"{file} imports {module}"
        for node in nodes(path):
            called = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
            assert called not in ("execute", "executemany", "cursor"), f"{file}:{node.lineno} runs a statement"


USE_CASES = {"erasure", "folding", "moving", "rebuild"}
"""What a command line and a request may have done at once; `runtime` and `processors` are processes."""


def test_the_api_calls_use_cases_of_the_workers_and_starts_no_work_of_theirs() -> None:
    for path in sources("api"):
        for module in reached(path):
            parts = module.split(".")
            if parts[:2] == ["memctl", "workers"]:
                assert parts[2] in USE_CASES, f"{path.relative_to(ROOT)} imports {module}"


def test_use_cases_of_the_workers_know_nothing_of_the_processes_that_run_them() -> None:
    for path in sources("workers"):
        if package_of(path, "workers") in USE_CASES:
            for module in reached(path):
                assert not module.startswith(("memctl.workers.runtime", "memctl.workers.jobs")), (
                    f"{path.relative_to(ROOT)} imports {module}"
                )


def test_nobody_acts_for_the_owner_by_default() -> None:
    """A caller is an argument without a default, and the owner is named only where a command line begins."""
    for path in sources("api"):
        for node in nodes(path):
            if isinstance(node, ast.arguments):
                given = [*zip(reversed([*node.posonlyargs, *node.args]), reversed(node.defaults), strict=False)]
                given += [
                    (one, default) for one, default in zip(node.kwonlyargs, node.kw_defaults, strict=True) if default
                ]
                for argument, default in given:
                    assert "OWNER" not in ast.unparse(default), f"{path.relative_to(ROOT)}:{argument.lineno}"
            if isinstance(node, ast.Assign | ast.AnnAssign) and "ContextVar" in (kept := ast.unparse(node)):
                assert not {"Caller", "OWNER"} & set(words(kept)), f"{path.relative_to(ROOT)}:{node.lineno}: {kept}"


def words(text: str) -> list[str]:
    """The names that stand in a piece of source."""
    return "".join(each if each.isalnum() or each == "_" else " " for each in text).split()


@pytest.mark.parametrize("room", ROOMS)
def test_no_room_imports_another_by_its_bare_name(room: str) -> None:
    for path in sources(room):
        for module in imports(path):
            assert module.split(".")[0] not in ROOMS, f"{path.relative_to(ROOT)} imports {module}"


def test_the_domain_and_the_projections_know_no_clock_and_no_outside_world() -> None:
    for room in ("domain", "projections"):
        for path in sources(room):
            outside = {module.split(".")[0] for module in imports(path)} & NOT_IN_DOMAIN
            assert not outside, f"{path.relative_to(ROOT)} imports {outside}"


NO_PATTERNS = {"re", "regex", "sre_compile", "fnmatch", "glob"}
"""Modules whose patterns go back over a text: `memctl.domain.support.patterns` matches in linear time."""

NO_READERS = {"http.cookies", "html.parser", "email.header", "email.message", "email.parser", "tokenize"}
"""Modules of the library that read a text by such patterns."""

BOUNDED = {"domain/events/core_memory.py"}
"""Files that give msgspec a pattern, which it matches by `re`: of a name of 40 characters at most."""


@pytest.mark.parametrize("room", ROOMS)
def test_patterns_are_compiled_in_one_place_by_an_engine_that_cannot_go_back(room: str) -> None:
    for path in sources(room):
        modules = {*imports(path), *named_to_import(path)}
        outside = ({module.split(".")[0] for module in modules} & NO_PATTERNS) | (modules & NO_READERS)
        assert not outside, f"{path.relative_to(ROOT)} imports {outside}: use memctl.domain.support.patterns"
        if str(path.relative_to(ROOT)) not in BOUNDED:
            assert not patterns_for_msgspec(path), f"{path.relative_to(ROOT)} has msgspec match a pattern"


def named_to_import(path: Path) -> list[str]:
    """What a file imports by a name that it gives to a function."""
    return [
        str(node.args[0].value)
        for node in nodes(path)
        if isinstance(node, ast.Call)
        and (getattr(node.func, "attr", "") or getattr(node.func, "id", "")) in ("import_module", "__import__")
        and node.args
        and isinstance(node.args[0], ast.Constant)
    ]


def patterns_for_msgspec(path: Path) -> list[int]:
    """Lines at which a file gives msgspec a pattern."""
    return [
        node.lineno
        for node in nodes(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "Meta"
        and any(keyword.arg == "pattern" for keyword in node.keywords)
    ]


def test_events_are_appended_in_one_place() -> None:
    for room in ("api", "workers", "cli"):
        for path in sources(room):
            for node in nodes(path):
                if isinstance(node, ast.ImportFrom) and node.module == "memctl.infra.log.append":
                    names = {alias.name for alias in node.names}
                    assert "append" not in names, f"{path.relative_to(ROOT)}: use memctl.infra.event_writer"


READS_ALL = {"api/reading/pages.py", "api/queries/endings.py"}
"""Where rows are read whoever may see them: by key, to decide what a caller may do; and for figures of the owner's."""


def test_rows_are_read_by_what_keeps_to_the_space_and_to_what_a_caller_may_see() -> None:
    for path in (path for path in sources("api") if str(path.relative_to(ROOT)) not in READS_ALL):
        for node in nodes(path):
            names = {alias.name for alias in node.names} if isinstance(node, ast.ImportFrom) else set()
            names |= {getattr(node.func, "attr", "")} if isinstance(node, ast.Call) else set()
            names &= {"table", "table_of", "visible_to_caller"}
            assert not names, f"{path.relative_to(ROOT)} has {names}: read from `rows_of` (api/reading/pages.py)"


MOST_FILES = 22


@pytest.mark.parametrize("room", ROOMS)
def test_a_folder_holds_no_more_than_one_can_see(room: str) -> None:
    folders = Counter(str(path.parent.relative_to(ROOT)) for path in sources(room))
    crowded = {folder for folder, count in folders.items() if count > MOST_FILES}
    assert crowded <= FLAT


FLAT = {"projections"}
"""One file a read model: the folder is its own list."""


@pytest.mark.parametrize("room", ROOMS)
def test_packages_of_a_room_import_each_other_in_one_direction(room: str) -> None:
    below: dict[str, set[str]] = defaultdict(set)
    for path in sources(room):
        of = package_of(path, room)
        for module in imports(path):
            parts = module.split(".")
            if of and parts[:2] == ["memctl", room] and len(parts) > 2 and parts[2] != of:
                below[of].add(parts[2])
    try:
        TopologicalSorter(below).prepare()
    except CycleError as circle:
        pytest.fail(f"{room}: {' imports '.join(circle.args[1])}")


def package_of(path: Path, room: str) -> str:
    """The package or module at the top of its room; empty for the room itself."""
    first = path.relative_to(ROOT / room).parts[0]
    return "" if first == "__init__.py" else first.removesuffix(".py")


def test_the_packages_listed_are_the_packages_on_disk() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        settings = tomllib.load(file)["tool"]["setuptools"]
    there = {
        "memctl." + ".".join(path.parent.relative_to(ROOT).parts)
        for room in ROOMS
        for path in (ROOT / room).rglob("__init__.py")
    }
    assert set(settings["packages"]) == there
    for package in there:
        top = package.split(".")[1]
        assert settings["package-dir"][f"memctl.{top}"] == top


def test_answers_for_texts_are_kept_by_what_bounds_their_length() -> None:
    """`remembered` does. A cache of `functools` counts entries, whatever they hold."""
    of_its_own = {"domain/support/patterns.py:_remembered"}
    found = set()
    for path in (path for room in ("domain", "projections", "infra") for path in sources(room)):
        for each in nodes(path):
            if not isinstance(each, ast.FunctionDef) or not each.args.args:
                continue
            kept = {ast.unparse(decorator).partition("(")[0] for decorator in each.decorator_list}
            texts = any("str" in ast.unparse(arg.annotation) for arg in each.args.args if arg.annotation)
            if texts and kept & {"cache", "lru_cache", "functools.cache", "functools.lru_cache"}:
                found.add(f"{path.relative_to(ROOT)}:{each.name}")
    of_settings = {"infra/redaction/text.py:redactor_of"}
    """Its texts are patterns of the settings."""
    assert found - of_its_own - of_settings == {"infra/llm/prompts.py:prompt"}, "its names are memctl's own"


def test_every_module_says_what_it_is_for() -> None:
    for room in ROOMS:
        for path in sources(room):
            assert ast.get_docstring(nodes(path)[0]), f"{path.relative_to(ROOT)}"


PRIVATE = {"told", "untold", "tells", "telling", "anew", "aftermath", "whereabouts", "foreseeing", "desk", "regarded"}
"""Words that stand for nothing in the field's books: events are recorded, memory recalls, rows are rebuilt."""

STORED_OR_SERVED = {
    "domain/events/facts.py": {'"told"', "told: int"},
    "domain/events/recalls.py": {'"told"'},
    "domain/language/prompt_origin.py": {"said|told|wrote"},
    "domain/session/reasoning.py": {"told=moved.mentions"},
    "projections/episodes.py": {"(told)"},
    "projections/working_memory.py": {"told: int", "fact.told"},
    "api/reading/records.py": {"told: int"},
    "api/queries/endings.py": {'"told"'},
}
"""Names of fields and values that stand in rows, facts and answers: to rename one is to change what is stored."""

FROM_USERS = {
    "domain/knowledge/orders.py": {"instruct\\w*|told|by order"},
    "domain/language/mood.py": {"(?:told|asked) you", '"told you"'},
    "domain/language/prompts.py": {"|never|told)"},
}
"""Words of what people write that patterns look for."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@pytest.mark.parametrize("room", ROOMS)
def test_names_and_messages_are_in_words_of_the_field(room: str) -> None:
    for path in [*sources(room), *sorted((ROOT / room).rglob("*.html"))]:
        file, text = str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
        for allowed in sorted(STORED_OR_SERVED.get(file, set()) | FROM_USERS.get(file, set()), key=len, reverse=True):
            assert allowed in text, f"{file}: {allowed} is gone, so it needs no exception"
            text = text.replace(allowed, "")
        for number, line in enumerate(text.splitlines(), 1):
            private = {word.lower() for word in _WORD.findall(line)} & PRIVATE
            assert not private, f"{file}:{number}: {', '.join(private)} is no word of the field"
