"""What a project is built with, as its files show: languages, manifests, imported libraries, and the roles of files."""

import tomllib
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from memctl.domain.shell.programs import words_of
from memctl.domain.support import patterns
from memctl.domain.support.literals import mentions
from memctl.domain.support.remembered import remembered

_LANGUAGES = {
    "Go": "go", "Python": "py pyi", "TypeScript": "ts tsx mts cts", "JavaScript": "js jsx mjs cjs", "Rust": "rs",
    "Java": "java", "Kotlin": "kt kts", "C": "c h", "C++": "cc cpp cxx hpp hh", "C#": "cs", "Ruby": "rb", "PHP": "php",
    "Swift": "swift", "Scala": "scala", "Elixir": "ex exs", "Shell": "sh bash zsh fish", "PowerShell": "ps1 psm1",
    "SQL": "sql", "Lua": "lua", "Dart": "dart", "Zig": "zig", "Haskell": "hs", "Vue": "vue", "Svelte": "svelte",
    "HTML": "html", "CSS": "css scss less", "Terraform": "tf", "Protocol Buffers": "proto",
}  # fmt: skip
_LANGUAGE_OF = {extension: name for name, extensions in _LANGUAGES.items() for extension in extensions.split()}

_CONFIG = patterns.compile(
    r"(?:package\.json|go\.mod|go\.work|pyproject\.toml|setup\.(?:py|cfg)|requirements[\w.-]*\.txt|Cargo\.toml|pom\.xml|"
    r"build\.gradle(?:\.kts)?|Gemfile|composer\.json|mix\.exs|deno\.jsonc?|Makefile|justfile|Taskfile\.ya?ml|mise\.toml|"
    r"tsconfig[\w.]*\.json|tox\.ini|noxfile\.py|\.golangci\.ya?ml|\.goreleaser\.ya?ml|\.pre-commit-config\.yaml|"
    r"(?:\.?eslint|\.?prettier|biome|vite|vitest|jest|webpack|rollup|tailwind|next|nuxt|astro|playwright|turbo|nx|tsup|"
    r"babel|metro|svelte|drizzle)[\w.-]*\.(?:json|jsonc|js|cjs|mjs|ts|ya?ml)|\.eslintrc|\.prettierrc|Dockerfile|"
    r"(?:docker-)?compose[\w.-]*\.ya?ml|CLAUDE\.md|AGENTS\.md|GEMINI\.md|lefthook\.yml|pnpm-workspace\.yaml)"
)
_ENTRY = patterns.compile(
    r"(?:.*/)?(?:cmd/[^/]+/main\.go|main\.(?:go|py|rs|ts|js|kt|c|cpp|dart|tsx)|__main__\.py|manage\.py|app\.py|wsgi\.py|"
    r"asgi\.py|Program\.cs|Main\.java|Application\.(?:java|kt)|(?:server|app|cli)\.(?:ts|js|mjs)|"
    r"(?:src|cli|api|server|app|bin)/index\.(?:ts|js|mjs))"
)
_TEST_STYLES = (
    ("`*_test.go` beside the code", patterns.compile(r".*_test\.go")),
    ("`test_*.py`", patterns.compile(r"(?:.*/)?test_[^/]+\.py")),
    ("`*_test.py`", patterns.compile(r".*_test\.py")),
    ("`*.test.ts` and the like", patterns.compile(r".*\.test\.[cm]?[jt]sx?")),
    ("`*.spec.ts` and the like", patterns.compile(r".*\.spec\.[cm]?[jt]sx?")),
    ("`*Test.java` and the like", patterns.compile(r".*Tests?\.(?:java|kt|cs|scala)")),
    ("`*_spec.rb`", patterns.compile(r".*_spec\.rb")),
    ("`tests/*.rs`", patterns.compile(r"(?:.*/)?tests/[^/]+\.rs")),
)
_CASES = (
    ("snake_case", patterns.compile(r"[a-z0-9]+(?:_[a-z0-9]+)+")),
    ("kebab-case", patterns.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+")),
    ("PascalCase", patterns.compile(r"(?:[A-Z][a-z0-9]+){2,}")),
    ("camelCase", patterns.compile(r"[a-z]+[a-z0-9]*(?:[A-Z][a-z0-9]*)+")),
)

MANIFESTS = {
    "package.json": "npm", "go.mod": "Go modules", "pyproject.toml": "Python", "Cargo.toml": "Cargo",
    "requirements.txt": "pip", "composer.json": "Composer", "mise.toml": "mise",
}  # fmt: skip
"""Manifests that are read, with what they are of."""

PACKAGES = 40
"""How many packages are read from one manifest."""

DEEPEST = 50
"""So many levels of lists and tables a manifest may have. Parsers give up where Python's stack ends: sooner in a worker
than in a rebuild, and their rows would differ."""


@remembered(512)
def language_of(path: str) -> str:
    """The language of a file by its name; empty for what is no code."""
    name = path.rpartition("/")[2]
    return _LANGUAGE_OF.get(name.rpartition(".")[2].lower(), "") if "." in name.lstrip(".") else ""


def is_config(path: str) -> bool:
    """Whether a file configures the project or its tools."""
    return _CONFIG.fullmatch(path.rpartition("/")[2]) is not None or path.startswith(".github/workflows/")


def is_entry(path: str) -> bool:
    """Whether a program begins in a file, by its name."""
    return _ENTRY.fullmatch(path) is not None and not any(part in path for part in ("node_modules/", "/dist/", "test"))


def test_style_of(path: str) -> str:
    """How a file shows itself to be a test, in words; empty where it is none."""
    return next((style for style, shape in _TEST_STYLES if shape.fullmatch(path)), "")


def case_of(path: str) -> str:
    """How a file's name is written, where it has several words: snake_case, kebab-case, PascalCase or camelCase."""
    stem = path.rpartition("/")[2].split(".", 1)[0].removesuffix("_test").removeprefix("test_")
    return next((name for name, shape in _CASES if shape.fullmatch(stem)), "")


# --- imports ---

_JS = patterns.compile(
    r"""(?:\bfrom|\bimport|\brequire\()\s*['"](@[\w.-]+/[\w.-]+|[A-Za-z][\w.-]*)(?:/[^'"\n]*)?['"]"""
)
_GO = patterns.compile(r'"([a-z0-9-]+(?:\.[a-z0-9-]+)+/[^"\s]+)"')
_PYTHON = patterns.compile(r"(?:^|[→\t])(?:import|from) ([a-z_]\w*)(?=[ .,]|$)")
_RUST = patterns.compile(r"(?:^|[→\t])(?:pub )?use ([a-z_]\w*)::")
_IMPORTS = {"Python": _PYTHON, "TypeScript": _JS, "JavaScript": _JS, "Vue": _JS, "Svelte": _JS, "Rust": _RUST}
_WORDS_OF_JS = ("from ", "import ", "require(")
_SAYS_IMPORT = dict.fromkeys(_IMPORTS, _WORDS_OF_JS) | {"Python": ("import ",), "Rust": ("use ",)}
_OWN = frozenset(("crate", "self", "super", "std", "core", "alloc", "__future__"))
_HOSTED = patterns.compile(r"((?:github\.com|gitlab\.com|bitbucket\.org)/[^/]+/[^/]+|[^/]+/[^/]+)(?:/.*)?")

IMPORTS_WITHIN = 2_500
"""Characters of a file in which its imports are looked for: they stand first."""


def imports_in(path: str, text: str) -> tuple[str, ...]:
    """The packages that a piece of code imports, by the names that they are installed by; own and built-in ones too,
    where their names do not show which they are. Sorted."""
    language = language_of(path)
    if language == "Go":
        at = text.find("import ", 0, IMPORTS_WITHIN)
        end = text.find(")" if text.startswith("import (", at) else "\n", at, IMPORTS_WITHIN)
        return _imported(language, text[at : end if end >= 0 else IMPORTS_WITHIN]) if at >= 0 else ()
    if language not in _IMPORTS:
        return ()
    head = text[:IMPORTS_WITHIN]
    return _imported(language, head) if mentions(head, _SAYS_IMPORT[language]) else ()


@remembered(512)
def _imported(language: str, head: str) -> tuple[str, ...]:
    """Cached, because the same files are read again and again."""
    if language == "Go":
        found = {match[1] for name in _GO.findall(head) if (match := _HOSTED.fullmatch(name))}
    else:
        shape, words = _IMPORTS[language], _SAYS_IMPORT[language]
        found = {name for line in head.split("\n") if mentions(line, words) for name in shape.findall(line)}
    return tuple(sorted(name for name in found if name not in _OWN and len(name) <= 80))[:PACKAGES]


_LIBRARIES = words_of(
    "react vue svelte next nuxt astro express fastify hono koa typeorm prisma drizzle-orm zod vitest jest mocha "
    "playwright tailwindcss vite axios redux zustand lodash three electron commander yargs chalk react-dom "
    "react-router-dom django flask fastapi starlette pydantic sqlalchemy alembic celery click typer rich requests "
    "httpx aiohttp numpy pandas scipy sklearn torch tensorflow transformers pytest hypothesis tokio serde axum clap "
    "reqwest anyhow thiserror tracing rayon diesel sqlx bevy fuser zeroize"
)
_SCOPES = ("@nestjs/", "@tanstack/", "@angular/", "@aws-sdk/", "@radix-ui/", "@testing-library/", "@playwright/")


def is_library(name: str) -> bool:
    """Whether an import's name is that of a well-known library. Others may be a path of the project's own."""
    return name in _LIBRARIES or name.startswith(_SCOPES)


# --- manifests ---


class Manifest(NamedTuple):
    """What a manifest states: what it is of, the project's own name there, what it depends on, and its commands."""

    of: str
    own: str = ""
    packages: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()


_LINE_NUMBER = patterns.compile(r"^[ \t]*\d+[→\t]", patterns.M)
_GO_MODULE = patterns.compile(r"^module (\S+)", patterns.M)
_GO_REQUIRES = patterns.compile(r"^(?:require )?\t?([a-z0-9.-]+\.[a-z]+/\S+) v\S+[ \t]*(//.*)?$", patterns.M)
_REQUIREMENT = patterns.compile(r"^([A-Za-z][\w.-]*)", patterns.M)


_DEEP_KEY = patterns.compile(r"""(?:(?:[\w-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')[ \t]*\.[ \t]*){33}""")
"""Names within one another by more than 32 dots. No manifest has such a key. `tomllib` looks each name up again from
the outermost for each key below it: 16,000 characters of them took a second."""


def manifest_in(path: str, text: str) -> Manifest | None:
    """What a manifest says, from its whole text (also with line numbers, as tools show it); None where it is none, or
    is cut."""
    return _read(path, text) if path.rpartition("/")[2] in MANIFESTS else None


@remembered(64, longest=16_384)
def _read(path: str, text: str) -> Manifest | None:
    name = path.rpartition("/")[2]
    if _LINE_NUMBER.match(text):
        text = _LINE_NUMBER.sub("", text).split("\n<system-reminder>", 1)[0]
    of = MANIFESTS[name]
    try:
        if name == "go.mod":
            own = _GO_MODULE.search(text)
            return (
                Manifest(
                    of, own[1], _some([name for name, said in _GO_REQUIRES.findall(text) if said != "// indirect"])
                )
                if own
                else None
            )
        if name == "requirements.txt":
            return Manifest(of, "", _some(_REQUIREMENT.findall(text)))
        if not name.endswith(".json") and _DEEP_KEY.search(text):
            return None
        decoded = msgspec.json.decode(text) if name.endswith(".json") else tomllib.loads(text)
    except (ValueError, RecursionError):
        return None
    return _of_tables(name, of, decoded) if isinstance(decoded, dict) and not _is_deeper(decoded, DEEPEST) else None


def _is_deeper(decoded: Any, levels: int) -> bool:
    """Whether lists and tables lie within each other more than so many levels deep."""
    inner = [decoded]
    for _ in range(levels):
        tables = [each.values() if isinstance(each, dict) else each for each in inner if isinstance(each, (dict, list))]
        inner = [each for table in tables for each in table]
    return any(isinstance(each, (dict, list)) for each in inner)


def _of_tables(name: str, of: str, manifest: Mapping[str, Any]) -> Manifest:
    match name:
        case "package.json" | "composer.json":
            kinds = ("dependencies", "devDependencies", "require", "require-dev")
            packages = [package for kind in kinds for package in _table(manifest, kind)]
            manager = _text(manifest, "packageManager").split("@")[0]
            return Manifest(manager or of, _text(manifest, "name"), _some(packages), _some(_table(manifest, "scripts")))
        case "pyproject.toml":
            project = _table(manifest, "project")
            listed = project.get("dependencies")
            packages = [
                m[1]
                for each in (listed if isinstance(listed, list) else ())
                if isinstance(each, str) and (m := _REQUIREMENT.match(each))
            ]
            poetry = _table(_table(manifest, "tool"), "poetry")
            packages += [package for package in _table(poetry, "dependencies") if package != "python"]
            manager = next((m for m in ("poetry", "uv", "pdm", "hatch") if m in _table(manifest, "tool")), of)
            return Manifest(manager, _text(project, "name") or _text(poetry, "name"), _some(packages))
        case "Cargo.toml":
            packages = [p for kind in ("dependencies", "dev-dependencies") for p in _table(manifest, kind)]
            return Manifest(of, _text(_table(manifest, "package"), "name"), _some(packages))
        case _:
            return Manifest(of, "", _some(_table(manifest, "tools")), _some(_table(manifest, "tasks")))


def _table(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = table.get(name)
    return found if isinstance(found, dict) else {}


def _text(table: Mapping[str, Any], name: str) -> str:
    found = table.get(name)
    return _name(found) if isinstance(found, str) else ""


def _some(names: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_name(str(name)) for name in names))[:PACKAGES]


def _name(name: str) -> str:
    # An escape may say NUL, of which the event's own text was free, and which no row can hold.
    return name.replace("\0", "")[:80]


# --- commits ---

_SUBJECT = patterns.compile(
    r"""git (?:-\S+ \S+ )?commit\b[^\n]*?(?:-\w*m|--message)[= ]?\s*"""
    r"""(?:"\$\(cat <<-?\s*['"]?(?P<mark>\w+)['"]?\n\s*(?P<here>[^\n]{3,})|"\s*(?P<double>(?:[^\n"\\]|\\.){3,})|"""
    r"""'\s*(?P<single>[^\n']{3,}))"""
)
_FORMS = ("here", "double", "single")
_CLOSES = patterns.compile(r"""(?s:(?:[^"\\]|\\.)*)(?P<end>")""")
"""A string in double quotes, up to its end."""
_CONVENTIONAL = patterns.compile(
    r"(?:feat|fix|docs|chore|refactor|test|ci|build|perf|style|revert)(?:\([^)]{1,60}\))?!?: \S"
)


_BY_GIT = patterns.compile(r"(?:Merge|Revert|WIP|wip)\b|(?:fixup|squash|amend)!|(?i:init(?:ial)?(?: commit)?)\W*$")
"""Beginnings of messages that git or the moment wrote."""


def subject_of(command: str) -> str:
    """The first line of the message that a command commits with; empty where it gives none of its own."""
    found = _SUBJECT.search(command) if "commit" in command else None
    subject = next(filter(None, map(found.group, _FORMS)), "")[:200].strip().replace('\\"', '"') if found else ""
    return "" if _BY_GIT.match(subject) else subject


def message_in(command: str) -> str:
    """The whole message that a command commits with, as far as one `-m` gives it; empty where `subject_of` is."""
    found = _SUBJECT.search(command) if subject_of(command) else None
    if found is None:
        return ""
    form = next(name for name in _FORMS if found[name])
    said = command[found.start(form) :]
    if form == "here":
        return said.partition(f"\n{found['mark']}")[0]
    if form == "single":
        return said.replace("'\"'\"'", "’").replace("'\\''", "’").partition("'")[0]
    return said[: stop.start("end") if (stop := _CLOSES.match(said)) else None].replace('\\"', '"')


def is_conventional(subject: str) -> bool:
    """Whether a commit's subject names the kind of change first (`fix(scope): …`)."""
    return _CONVENTIONAL.match(subject) is not None


def commit_style_of(subject: str) -> str:
    """How a commit's subject is written."""
    if is_conventional(subject):
        return "conventional commits (`fix(scope): …`)"
    return "capitalised sentences" if subject[:1].isupper() else "plain lower case"
