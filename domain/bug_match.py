"""Matching an error against a bug pattern: how alike they are, and in what.

Seed 000, 4-5: error type, message, stack and context are compared; above 0.5 counts as a match.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from posixpath import basename, splitext
from typing import Protocol

import msgspec
from rapidfuzz import fuzz

MATCHES_ABOVE = 0.5

_WEIGHTS = {"error type": 0.3, "message": 0.5, "stack": 0.1, "file types": 0.05, "frameworks": 0.05}
_LEAST_WEIGHT = 0.7
"""An error of which little is known is judged as if this much weight were: one aspect alone never makes a match."""

_OTHER_TYPE = 0.6
"""What remains of a score where both error types are known and none is shared."""

_UNRELATED = 50.0
"""Similarity (0 to 100) of two messages that have nothing to do with each other."""

_ASPECT_FROM = 0.6
_PLACEHOLDER = re.compile(r"<[a-z_-]+>|\{[a-z_-]+\}|\[[a-z_-]+\]")
_WORD = re.compile(r"[^\W\d_]{2,}")

_SUFFIX_NAMES = {
    "py": "python", "pyi": "python", "ts": "typescript", "tsx": "typescript", "mts": "typescript", "cts": "typescript",
    "js": "javascript", "jsx": "javascript", "mjs": "javascript", "cjs": "javascript", "go": "go", "rs": "rust",
    "java": "java", "kt": "kotlin", "kts": "kotlin", "scala": "scala", "rb": "ruby", "php": "php", "cs": "csharp",
    "swift": "swift", "c": "c", "h": "c", "cc": "cpp", "cpp": "cpp", "hpp": "cpp", "cxx": "cpp", "sql": "sql",
    "sh": "shell", "bash": "shell", "zsh": "shell", "ps1": "powershell", "lua": "lua", "ex": "elixir", "exs": "elixir",
    "yml": "yaml", "yaml": "yaml", "toml": "toml", "json": "json", "md": "markdown", "mdx": "markdown", "html": "html",
    "css": "css", "scss": "css", "vue": "vue", "svelte": "svelte", "dart": "dart", "tf": "terraform", "proto": "proto",
}  # fmt: skip

# What a command or a path gives away about the tools at work; names are what people call them.
_FRAMEWORKS = tuple(
    (re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])"), name)
    for pattern, name in (
        (r"pytest|conftest\.py", "pytest"),
        (r"vitest", "vitest"),
        (r"jest", "jest"),
        (r"playwright", "playwright"),
        (r"cypress", "cypress"),
        (r"mocha", "mocha"),
        (r"go (?:test|build|vet|mod|run|generate)|go\.mod|_test\.go", "go toolchain"),
        (r"golangci-lint", "golangci-lint"),
        (r"cargo|Cargo\.toml", "cargo"),
        (r"tsc|tsconfig\.json", "tsc"),
        (r"eslint", "eslint"),
        (r"biome", "biome"),
        (r"prettier", "prettier"),
        (r"ruff", "ruff"),
        (r"mypy", "mypy"),
        (r"next(?:\.config\.\w+| build| dev)", "next"),
        (r"vite(?:\.config\.\w+| build)?", "vite"),
        (r"nest|nest-cli\.json", "nest"),
        (r"manage\.py|django", "django"),
        (r"flask", "flask"),
        (r"fastapi|uvicorn", "fastapi"),
        (r"rails|Gemfile", "rails"),
        (r"mvn|pom\.xml", "maven"),
        (r"gradlew?|build\.gradle(?:\.kts)?", "gradle"),
        (r"dotnet", "dotnet"),
        (r"docker(?:-compose)?|Dockerfile|docker-compose\.ya?ml", "docker"),
        (r"kubectl|helm", "kubernetes"),
        (r"terraform", "terraform"),
        (r"pnpm", "pnpm"),
        (r"yarn", "yarn"),
        (r"bun", "bun"),
        (r"npm|npx", "npm"),
        (r"uv|uvx", "uv"),
        (r"pip3?", "pip"),
        (r"poetry", "poetry"),
        (r"make|Makefile", "make"),
        (r"mise", "mise"),
        (r"git", "git"),
        (r"gh", "gh"),
        (r"psql|alembic", "postgres"),
    )
)


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
        return Match(1.0, ("signature",))
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


def file_types_of(paths: Iterable[str]) -> tuple[str, ...]:
    """Languages and formats of the files named, sorted. Frames such as `src/a.py:12 in f` count by their path."""
    found = set()
    for path in paths:
        words = path.split()
        suffix = splitext(basename(words[0].split(":")[0] if words else ""))[1][1:].lower()
        if suffix in _SUFFIX_NAMES:
            found.add(_SUFFIX_NAMES[suffix])
    return tuple(sorted(found))


def frameworks_of(command: str, paths: Iterable[str] = ()) -> tuple[str, ...]:
    """Tools and frameworks that a command line or the names of files give away, sorted."""
    text = "\n".join((command[:600], *(basename(p) for p in paths)))
    return tuple(sorted({name for pattern, name in _FRAMEWORKS if pattern.search(text)}))


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


def _places(frames: Iterable[str]) -> set[str]:
    """Frames without the numbers of their lines, which move with every edit."""
    return {re.sub(r":\d+(?::\d+)?|,? line \d+", "", f).strip().lower() for f in frames}
