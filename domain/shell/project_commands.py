"""How a project is worked on, as a command shows it: which one runs its tests, lints, formats, builds.

Only what is done to the project as a whole counts. A run of one file, one package, one test by name, or with settings
made up for the occasion says how somebody looked at something, and not how it is done here.
"""

from typing import NamedTuple

from memctl.domain.shell.programs import WRAPPERS, words_of
from memctl.domain.support import patterns
from memctl.domain.support.remembered import remembered


class ProjectCommand(NamedTuple):
    """What a command is for (`text`, without the command) and the command whole, in the form that all its runs share.

    `own`: the project defined it itself, so a single run is enough to know it. `anywhere`: it does the same in all
    directories of the project.
    """

    text: str
    command: str
    own: bool
    anywhere: bool


_RUNNER = (
    r"(?P<runner>mise (?:run|r)|(?:npm|pnpm|yarn|bun|composer) run(?:-script)?|deno task|poe|just|make|task|rake|"
    r"invoke|inv|turbo(?: run)?|(?:hatch|pdm) run)"
)
_MANAGERS_OWN = words_of(
    "add audit bin cache ci config create dedupe deploy dlx exec fetch global help import info init install link list "
    "login logout ls node npm outdated pack patch prune publish rebuild remove root run set setup store unlink unplug "
    "update up upgrade version view why workspace workspaces x"
)
"""Commands of pnpm and yarn themselves; any other word is a script of the project."""

_WIDE = r"(?: (?:-r|-w|--recursive|--workspaces|-ws))*"
_OWN = patterns.compile(rf"{_RUNNER}{_WIDE} (?P<script>\w[\w:.-]*)")
_SHORT = patterns.compile(rf"(?P<runner>npm|pnpm|yarn){_WIDE} (?P<script>\w[\w:.-]*)")
_FILE = patterns.compile(r"\.(?:[cm]?[jt]sx?|py|sh|rb|php|ex|exs|lua)\Z")
_SEARCHING = ("mise", "just", "task", "rake", "invoke", "inv", "poe")
"""Runners that look for their file in the directories above."""

_THROUGH = (
    r"(?:(?:uv|poetry|pdm|hatch|pipenv|rye) run |npx |bunx |pnpm (?:exec |dlx )?|yarn (?:exec )?|bundle exec "
    r"|python3? -m |(?:\./)?\.?venv/bin/(?:python3? -m )?|(?:\./)?node_modules/\.bin/)?"
)
_TOOLS = tuple(
    (patterns.compile(rf"{_THROUGH}(?:{pattern})"), about)
    for about, pattern in (
        ("tests", r"pytest|tox|nox|vitest(?: run)?|jest|mocha|rspec|rails test|mix test|phpunit|ctest|dotnet test"),
        ("tests", r"cargo test(?: --workspace| --all)*|cargo nextest run|swift test|flutter test|bun test|deno test"),
        ("tests", r"go test(?: -race)? \./\.\.\.|gotestsum(?: \./\.\.\.)?"),
        ("tests", r"(?:\./)?(?:gradle|mvn)w? (?:test|check|verify)"),
        ("lint", r"golangci-lint run(?: \./\.\.\.)?|go vet \./\.\.\.|ruff check(?: \.)?|eslint \.|biome check(?: \.)?"),
        ("lint", r"cargo clippy(?: --workspace| --all-targets| --all-features| -- -D warnings)*|flake8|rubocop"),
        ("format", r"ruff format(?: \.)?|black \.|prettier --write \.|cargo fmt(?: --all)?|go fmt \./\.\.\."),
        ("types", r"mypy(?: \.)?|pyright|(?:vue-)?tsc --noEmit"),
        ("build", r"(?:\./)?gradlew? build|(?:\./)?mvnw? package|dotnet build"),
        ("check", r"pre-commit run (?:--all-files|-a)"),
        ("tests", r"(?:python3? )?(?:\./)?manage\.py test"),
        ("migrate", r"alembic upgrade head|prisma migrate (?:dev|deploy)|(?:bin/)?rails db:migrate|flyway migrate"),
        ("migrate", r"(?:python3? )?(?:\./)?manage\.py migrate"),
        ("services", r"docker[ -]compose(?: -f [\w./-]+)? up -d(?: --build| --wait)*"),
        ("environment", r"(?:source|\.) (?:\./)?[\w.-]*(?:env|venv)[\w.-]*/bin/activate"),
    )
)
"""Tools that no project defined, run on all of it. What each compiler does by itself is left out."""

_TEXTS = {
    "tests": "The tests run with",
    "ci tests": "The tests run as in CI with",
    "coverage": "Test coverage is measured with",
    "fix": "Lint problems are fixed with",
    "lint": "Linting is done with",
    "format": "Formatting is done with",
    "format check": "Formatting is checked with",
    "types": "Types are checked with",
    "check": "The code is checked with",
    "build": "The project builds with",
    "generate": "Code is generated with",
    "migrate": "The database is migrated with",
    "start": "The app is started with",
    "services": "The services that it needs are started with",
    "environment": "Commands run in the virtual environment of",
}
_SCRIPTS = (
    (patterns.compile(r".*(?:watch|debug|only|update|changed|staged|\bui\b|affected|inspect|clean|snapshot).*"), ""),
    (patterns.compile(r"tests?|t|test[:-]all|specs?"), "tests"),
    (patterns.compile(r"test[:-]ci|ci[:-]test"), "ci tests"),
    (patterns.compile(r"(?:test[:-])?cov(?:erage)?"), "coverage"),
    (patterns.compile(r"(?:test[:-])?(?P<which>e2e|unit|integration|smoke|acceptance|functional|api|browser)(?:[:-]tests?)?"),
     "which"),
    (patterns.compile(r"(?:lint|eslint|check|ruff|biome)[:-]fix|fix(?:[:-](?:lint|all))?"), "fix"),
    (patterns.compile(r"(?:eslint|lint)(?:[:-](?:all|check|ci|code|js|ts|go|py))?|clippy|vet"), "lint"),
    (patterns.compile(r"(?:fmt|format|prettier)[:-]check|check[:-](?:fmt|format)"), "format check"),
    (patterns.compile(r"fmt|format|prettier|(?:fmt|format)[:-](?:all|fix|write|code)"), "format"),
    (patterns.compile(r"type-?check|check[:-]types?|tsc|types|mypy|pyright|check[:-]ts"), "types"),
    (patterns.compile(r"check|verify|ci|validate|pre-?commit|check[:-]all"), "check"),
    (patterns.compile(r"build|compile|bundle|build[:-]all|dist"), "build"),
    (patterns.compile(r"(?:\w+[:-])?(?:generate|codegen|gen|protoc?|openapi)(?:[:-]\w+)?"), "generate"),
    (patterns.compile(r"(?:db[:-])?migrat(?:e|ions?)(?:[:-](?:up|run|dev|latest))?"), "migrate"),
    (patterns.compile(r"dev|start|serve|(?:dev|start)[:-]\w+"), "start"),
)  # fmt: skip
"""What a script of a project is for, by its name; the first that matches decides."""

PROGRAMS = words_of(
    "mise npm pnpm yarn bun composer deno poe just make task rake invoke inv turbo hatch pdm uv poetry pipenv rye npx "
    "bunx bundle python python3 pytest tox nox vitest jest mocha rspec rails mix phpunit ctest dotnet cargo swift "
    "flutter go gotestsum gradle gradlew mvn mvnw golangci-lint ruff eslint biome flake8 rubocop black prettier mypy "
    "pyright tsc vue-tsc pre-commit manage.py alembic prisma flyway docker docker-compose source ."
)
"""What the patterns above begin with, without its path: other commands are not matched with any."""

_ASSIGNMENT = patterns.compile(r"(?:CI|NO_COLOR|FORCE_COLOR|TERM|NODE_ENV|COLUMNS)=\S*\Z")
_QUIET = patterns.compile(
    r"-(?:v+|q+|s|x|ra|rA|n|silent|short)|--(?:quiet|silent|verbose|no-color|color|colors|tb|no-header|reporter|"
    r"passWithNoTests|run|maxfail|bail|if-present|no-progress|failfast|fail-fast|no-bail|no-cov)(?:=\S*)?|"
    r"-(?:count|timeout|parallel|p)=\S+|--(?:log-level|loglevel|output-logs)=\S+|-p no:\S+"
)
"""Options that change what is printed, or how soon a run ends, and not what is run."""


@remembered(1024)
def way_of(words: tuple[str, ...]) -> ProjectCommand | None:
    """What the words of a simple command say of how its project is worked on; None where they say nothing."""
    at = _program_at(words)
    rest = words[at : at + 9]
    if not rest or len(rest) > 8 or rest[0].rpartition("/")[2] not in PROGRAMS:
        return None
    command = " ".join((rest[0], *(word for word in rest[1:] if not _QUIET.fullmatch(word))))
    for pattern in (_OWN, _SHORT):
        found = pattern.fullmatch(command)
        if found is not None and not _FILE.search(found["script"]):
            if pattern is _SHORT and not _is_script(found["runner"], found["script"]):
                return None
            text = _purpose(found["script"])
            program = found["runner"].partition(" ")[0]
            return ProjectCommand(text, command, True, program in _SEARCHING) if text else None
    for tool, about in _TOOLS:
        if tool.fullmatch(command):
            return ProjectCommand(_TEXTS[about], command, False, False)
    return None


def _program_at(words: tuple[str, ...]) -> int:
    """Where the program stands behind assignments and wrappers; the words' number where there is none."""
    at = 0
    while at < len(words):
        word = words[at]
        if _ASSIGNMENT.match(word) or word in WRAPPERS:
            at += 1
        elif word in ("timeout", "gtimeout") and at + 1 < len(words):
            at += 2
        else:
            break
    return at


def _is_script(runner: str, word: str) -> bool:
    """Whether a word right behind a package manager is a script of the project's, and not a command of its own."""
    return word not in _MANAGERS_OWN and (runner != "npm" or word in ("test", "t", "start"))


def _purpose(script: str) -> str:
    for pattern, about in _SCRIPTS:
        if found := pattern.fullmatch(script):
            if about == "which":
                return f"The {_KINDS.get(found['which'], found['which'])} tests run with"
            return _TEXTS.get(about, "")
    return ""


_KINDS = {"e2e": "end-to-end", "api": "API"}

_MISSING = patterns.compile(
    r"missing script|no rule to make|no tasks?\b|not found|unknown (?:command|task|script|recipe|option)|"
    r"does not contain|no such|could ?n.t (?:find|determine)|could not|ERR_PNPM_\w*SCRIPT|is not (?:a|recognized)|"
    r"permission denied|denied",
    patterns.I,
)


def is_there(output: str) -> bool:
    """Whether the output of a run that ended badly, or whose end a pipe hid, is that of a command that exists."""
    return not _MISSING.search(output, 0, 1500)
