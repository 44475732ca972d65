"""Matching an error against a bug pattern: how alike they are, and in what.

Error type, message, stack and context are compared; above 0.5 counts as a match.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from posixpath import basename, splitext
from typing import Protocol

import msgspec
from rapidfuzz import fuzz

from memctl.domain.failures.signatures import says_little
from memctl.domain.failures.templates import template_of
from memctl.domain.support import patterns
from memctl.domain.support.certainty import SUGGESTED, Class

MATCHES_ABOVE = 0.5

_WEIGHTS = {"error type": 0.3, "message": 0.5, "stack": 0.1, "file types": 0.05, "frameworks": 0.05}
_LEAST_WEIGHT = 0.7
"""An error of which little is known is judged as if this much weight were: one aspect alone never makes a match."""

_OTHER_TYPE = 0.6
"""What remains of a score where both error types are known and none is shared."""

_UNRELATED = 50.0
"""Similarity (0 to 100) of two messages that have nothing to do with each other."""

_ASPECT_FROM = 0.6
_PLACEHOLDER = patterns.compile(r"<[a-z_-]+>|\{[a-z_-]+\}|\[[a-z_-]+\]")
_WORD = patterns.compile(r"[^\W\d_]{2,}")

MOST_LINES, LEAST_WORDS = 40, 4
"""Lines of a text that are compared with messages, and words of a message that says which error it is."""

_SUFFIX_NAMES = {
    "py": "python", "pyi": "python", "ts": "typescript", "tsx": "typescript", "mts": "typescript", "cts": "typescript",
    "js": "javascript", "jsx": "javascript", "mjs": "javascript", "cjs": "javascript", "go": "go", "rs": "rust",
    "java": "java", "kt": "kotlin", "kts": "kotlin", "scala": "scala", "rb": "ruby", "php": "php", "cs": "csharp",
    "swift": "swift", "c": "c", "h": "c", "cc": "cpp", "cpp": "cpp", "hpp": "cpp", "cxx": "cpp", "sql": "sql",
    "sh": "shell", "bash": "shell", "zsh": "shell", "ps1": "powershell", "lua": "lua", "ex": "elixir", "exs": "elixir",
    "yml": "yaml", "yaml": "yaml", "toml": "toml", "json": "json", "md": "markdown", "mdx": "markdown", "html": "html",
    "css": "css", "scss": "css", "vue": "vue", "svelte": "svelte", "dart": "dart", "tf": "terraform", "proto": "proto",
}  # fmt: skip

# What a command's words and a file's name give away about the tools at work; names are what people call them.
_COMMAND_WORDS = {
    "pytest": "pytest", "vitest": "vitest", "jest": "jest", "playwright": "playwright", "cypress": "cypress",
    "mocha": "mocha", "go": "go toolchain", "gofmt": "go toolchain", "golangci-lint": "golangci-lint",
    "cargo": "cargo", "rustc": "cargo", "tsc": "tsc", "eslint": "eslint", "biome": "biome", "prettier": "prettier",
    "ruff": "ruff", "mypy": "mypy", "next": "next", "vite": "vite", "nest": "nest", "manage.py": "django",
    "django-admin": "django", "flask": "flask", "uvicorn": "fastapi", "rails": "rails", "bundle": "bundler",
    "mvn": "maven", "mvnw": "maven", "gradle": "gradle", "gradlew": "gradle", "dotnet": "dotnet", "docker": "docker",
    "docker-compose": "docker", "kubectl": "kubernetes", "helm": "kubernetes", "terraform": "terraform",
    "pnpm": "pnpm", "yarn": "yarn", "bun": "bun", "bunx": "bun", "npm": "npm", "npx": "npm", "uv": "uv", "uvx": "uv",
    "pip": "pip", "pip3": "pip", "poetry": "poetry", "make": "make", "mise": "mise", "git": "git", "gh": "gh",
    "psql": "postgres", "alembic": "alembic", "cmake": "cmake", "swift": "swift", "mix": "mix",
}  # fmt: skip
_FILE_NAMES = {
    "conftest.py": "pytest", "go.mod": "go toolchain", "go.sum": "go toolchain", "Cargo.toml": "cargo",
    "tsconfig.json": "tsc", "nest-cli.json": "nest", "manage.py": "django", "Gemfile": "bundler", "pom.xml": "maven",
    "build.gradle": "gradle", "build.gradle.kts": "gradle", "Dockerfile": "docker", "docker-compose.yml": "docker",
    "docker-compose.yaml": "docker", "Makefile": "make", "CMakeLists.txt": "cmake", "mise.toml": "mise",
    "mix.exs": "mix", "alembic.ini": "alembic",
}  # fmt: skip
_FILE_STEMS = {"next.config": "next", "vite.config": "vite", "vitest.config": "vitest", "jest.config": "jest",
               "playwright.config": "playwright", "eslint.config": "eslint"}  # fmt: skip
_COMMAND_WORD = patterns.compile(r"(?<![\w./-])(?:\./)?([\w.-]+)(?![\w/-])")


class SeenLike(Protocol):
    """An error as a rule read it out of a text."""

    @property
    def signature(self) -> str: ...
    @property
    def error_types(self) -> tuple[str, ...]: ...
    @property
    def template(self) -> str: ...
    @property
    def frames(self) -> tuple[str, ...]: ...
    @property
    def files(self) -> tuple[str, ...]: ...


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """What two errors are compared by."""

    signature: str = ""
    error_types: tuple[str, ...] = ()
    template: str = ""
    frames: tuple[str, ...] = ()
    file_types: tuple[str, ...] = ()
    frameworks: tuple[str, ...] = ()


class Match(msgspec.Struct, frozen=True):
    """How alike (0 to 1), and the aspects that matched, weightiest first."""

    score: float
    aspects: tuple[str, ...]

    @property
    def class_(self) -> Class:
        """`high`: the same error. `suggested`: much alike. `none`: a match (above 0.5), but not one to go by unasked:
        whoever asked for it may look."""
        if SIGNATURE in self.aspects:
            return "high"
        return "suggested" if self.score >= SUGGESTED else "none"


SIGNATURE, DESCRIPTION = "signature", "description"
"""Aspects: the same error; words and meaning of what somebody wrote, where no error was recognised in it."""


def shape_of(seen: SeenLike, command: str = "") -> Shape:
    """The shape of an error that was asked about."""
    paths = (*seen.files, *seen.frames)
    return Shape(
        signature=seen.signature,
        error_types=seen.error_types,
        template=seen.template,
        frames=seen.frames,
        file_types=file_types_of(paths),
        frameworks=frameworks_of(command, paths),
    )


def match(query: Shape, pattern: Shape) -> Match:
    """Compare an error with a pattern. An equal signature is certainty; else what both sides know is weighed."""
    if query.signature and query.signature == pattern.signature:
        return Match(1.0, (SIGNATURE,))
    alike: dict[str, float] = {}
    known = 0.0
    other_type = False
    if query.error_types and pattern.error_types:
        alike["error type"] = _overlap(_lowered(query.error_types), _lowered(pattern.error_types), of_smaller=True)
        other_type = not alike["error type"]
    if query.template and pattern.template:
        alike["message"] = _messages(query.template, pattern.template)
    if query.frames and pattern.frames:
        alike["stack"] = _overlap(_places(query.frames), _places(pattern.frames))
    if query.file_types and pattern.file_types:
        alike["file types"] = _overlap(set(query.file_types), set(pattern.file_types))
    if query.frameworks and pattern.frameworks:
        alike["frameworks"] = _overlap(set(query.frameworks), set(pattern.frameworks), of_smaller=True)
    known = sum(_WEIGHTS[aspect] for aspect in alike)
    score = sum(_WEIGHTS[aspect] * value for aspect, value in alike.items()) / max(known, _LEAST_WEIGHT)
    if other_type:
        score *= _OTHER_TYPE
    aspects = tuple(a for a in _WEIGHTS if alike.get(a, 0.0) >= _ASPECT_FROM)
    return Match(round(score, 4), aspects)


def held_in(text: str, templates: Mapping[str, str]) -> set[str]:
    """The keys of those messages that a text holds whole, what varies from run to run aside."""
    named = {
        key: f" {template} "
        for key, template in templates.items()
        if len(_WORD.findall(_PLACEHOLDER.sub(" ", template))) >= LEAST_WORDS and not says_little(template)
    }
    lines = (text, *text.splitlines()[:MOST_LINES]) if named else ()
    forms = [f" {template_of(each)} " for each in lines]
    return {key for key, template in named.items() if any(template in form for form in forms)}


def file_types_of(paths: Iterable[str]) -> tuple[str, ...]:
    """Languages and formats of the files named, sorted. Frames such as `src/a.py:12 in f` count by their path."""
    suffixes = {splitext(_file_name(path))[1][1:].lower() for path in paths}
    return tuple(sorted({_SUFFIX_NAMES[s] for s in suffixes if s in _SUFFIX_NAMES}))


def frameworks_of(command: str, paths: Iterable[str] = ()) -> tuple[str, ...]:
    """Tools and frameworks that a command line or the names of files give away, sorted."""
    found = {_COMMAND_WORDS[w] for w in _COMMAND_WORD.findall(command[:600]) if w in _COMMAND_WORDS}
    for path in paths:
        name = _file_name(path)
        if name.endswith("_test.go"):
            found.add("go toolchain")
        for known in (_FILE_NAMES.get(name), _FILE_STEMS.get(splitext(name)[0])):
            if known is not None:
                found.add(known)
    return tuple(sorted(found))


def _file_name(frame: str) -> str:
    """Name of the file in a path or a frame such as `src/a.py:12 in f`."""
    return basename(frame[:400].split(":", 1)[0].split(" ", 1)[0])


def _messages(a: str, b: str) -> float:
    """0 to 1. Placeholders are left out: that two messages both name a path makes them no more alike."""
    left, right = (" ".join(_PLACEHOLDER.sub(" ", t).lower().split()) for t in (a, b))
    if left == right:
        # Nothing but placeholders, or one bare word, is the shape of many errors.
        return 1.0 if len(_WORD.findall(left)) > 1 else 0.5
    if min(len(_WORD.findall(left)), len(_WORD.findall(right))) < 2:
        return 0.0
    ratio = max(fuzz.ratio(left, right), fuzz.token_sort_ratio(left, right))
    return max(0.0, (ratio - _UNRELATED) / (100.0 - _UNRELATED))


def _overlap(a: set[str], b: set[str], *, of_smaller: bool = False) -> float:
    if not a or not b:
        return 0.0
    return len(a & b) / (min(len(a), len(b)) if of_smaller else len(a | b))


def _lowered(types: Iterable[str]) -> set[str]:
    return {t.rsplit(".", 1)[-1].lower() for t in types}


_LINE = patterns.compile(r":\d+(?::\d+)?|,? line \d+")


def _places(frames: Iterable[str]) -> set[str]:
    """Frames without the numbers of their lines, which move with every edit."""
    return {_LINE.sub("", f).strip().lower() for f in frames}
