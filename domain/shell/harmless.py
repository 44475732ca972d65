"""Commands that may be named to an agent that did not ask: they check, build or format what is there, or look at it.

A list of what is allowed, not of what is not: who wants another's agent to fetch or run something finds a program that
no list of bad ones holds.
"""

from __future__ import annotations

from memctl.domain.shell.commands import parts_of
from memctl.domain.support import patterns

_STANDARD = frozenset(
    (
        *("test", "tests", "build", "lint", "format", "fmt", "check", "checks", "typecheck", "type-check", "generate"),
        *("docs", "clean", "all", "coverage", "unit", "integration", "e2e", "compile", "validate", "verify", "vet"),
    )
)
"""What the scripts of a project are called that check and build it."""

_GIT = frozenset(
    (
        *("add", "commit", "status", "diff", "log", "show", "stash", "restore", "switch", "branch", "mv", "rebase"),
        *("merge", "cherry-pick", "blame", "grep", "ls-files", "rev-parse", "describe", "tag", "worktree"),
    )
)

_ANY = (
    *("pytest", "ruff", "black", "isort", "mypy", "flake8", "pylint", "pyright", "gofmt", "goimports", "golangci-lint"),
    *("staticcheck", "rustfmt", "tsc", "eslint", "prettier", "biome", "jest", "vitest", "mocha", "rspec", "rubocop"),
    *("phpunit", "clang-format", "shellcheck", "markdownlint", "stylelint", "ctest"),
    *("cd", "ls", "cat", "head", "tail", "grep", "rg", "wc", "sort", "uniq", "diff", "pwd", "true", "echo", "which"),
)
_RUNNERS = ("make", "just", "npm", "pnpm", "yarn", "bun", "mvn", "mvnw", "gradle", "gradlew", "rake", "ninja", "tox")

_ALLOWED: dict[str, frozenset[str] | None] = {
    **dict.fromkeys(_ANY),
    **dict.fromkeys(_RUNNERS, _STANDARD),
    "go": frozenset(("test", "build", "vet", "fmt", "generate", "clean", "version")),
    "cargo": frozenset(("test", "build", "check", "clippy", "fmt", "clean")),
    "dotnet": frozenset(("test", "build", "format", "clean")),
    "terraform": frozenset(("fmt", "validate")),
    "mix": frozenset(("test", "compile", "format")),
    "git": _GIT,
}
"""Programs, each with the subcommands that are allowed; None: with whatever words."""

_MODULES = frozenset(("pytest", "unittest", "ruff", "black", "isort", "mypy", "flake8", "pylint", "compileall"))
"""What may follow `python -m`."""

_REACHES = patterns.compile(
    r"://|[$`<>~@]|\.\.[\\/]|^-\w*[cfIpXx]$|(?i:exec|config|plugin|script|init|import|require|loader|rootdir|hook"
    r"|register|registry|index|proxy|no-verify|force|hard|upload|publish|site-packages|\.venv|node_modules[\\/]\.)"
)
"""What a word of an allowed command may not hold: an address, a substitution, an option that runs something else."""

_SETTINGS = patterns.compile(r"^(?:CI|TZ|LANG|LC_ALL|NO_COLOR|FORCE_COLOR|DEBUG|RUST_BACKTRACE|NODE_ENV)=[\w.:-]*$")
_QUIET = patterns.compile(r"(?:2>&1|&?>/dev/null|2>/dev/null)")


def harmless(command: str) -> bool:
    """Whether every part of a command line is one that only checks, builds, formats or looks."""
    parts = parts_of(_QUIET.sub(" ", command))
    return bool(parts) and all(_allowed(part.words) for part in parts) and not _redirected(command)


def _redirected(command: str) -> bool:
    return any(sign in _QUIET.sub(" ", command) for sign in (">", "<", "`", "$("))


def _allowed(words: tuple[str, ...]) -> bool:
    at = 0
    while at < len(words) and _SETTINGS.match(words[at]):
        at += 1
    if at == len(words) or any(_REACHES.search(word) for word in words[at:]):
        return False
    program, rest = words[at].removeprefix("./"), words[at + 1 :]
    if program in ("python", "python3"):
        return rest[:1] == ("-m",) and rest[1:2] != () and rest[1] in _MODULES
    if program not in _ALLOWED or (words[at] != program and program not in ("gradlew", "mvnw")):
        return False
    subcommands = _ALLOWED[program]
    if subcommands is None:
        return True
    named = [word for word in rest if word[0] != "-" and word != "run"]
    return bool(named) and named[0].partition(":")[0] in subcommands


_STARTERS = frozenset(
    (
        *("python", "python3", "py", "node", "uv", "run", "npx", "poetry", "bundle", "exec", "pipenv", "hatch", "rye"),
        *("pdm", "bunx", "tsx", "env", "cd", "-m"),
    )
)
"""Words that start a program which is there."""

_IN_ENVIRONMENT = patterns.compile(r"^(?:\./)?\.?v?env/(?:bin|Scripts)/[\w.-]+$")
_SCRIPT = patterns.compile(r"\.(?:sh|bash|zsh|py|js|mjs|cjs|ts|rb|pl|php|ps1|bat|cmd|exe|so|jar)$")
_PLAIN = patterns.compile(r"^(?:-{1,2}[\w=.,:-]+|[\w./:\[\]=,*-]+)$")


def says_it_otherwise(failed: str, works: str) -> bool:
    """Whether a command only says in another way what the one that failed says: what is new in it starts or checks
    things, is an option, or the place of a file that both name."""
    known = {word.strip("\"'") for part in parts_of(failed) for word in part.words}
    files = {word.rpartition("/")[2] for word in known}
    for part in parts_of(_QUIET.sub(" ", works)):
        for word in (word.strip("\"'") for word in part.words):
            if word in known or word in _STARTERS or word in _ALLOWED or _IN_ENVIRONMENT.match(word):
                continue
            if _REACHES.search(word) or not _PLAIN.match(word):
                return False
            name = word.rpartition("/")[2]
            if _SCRIPT.search(name) and name not in files:
                return False
            if word[0] != "-" and "/" not in word and "." not in word and word not in _STANDARD and name not in files:
                return False
    return not _redirected(works)
