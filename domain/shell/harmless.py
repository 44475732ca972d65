"""Commands that may be named to an agent that did not ask: they check, build or format what is there, or look at it.

A list of what is allowed, not of what is not: who wants another's agent to fetch or run something finds a program that
no list of bad ones holds.
"""

from collections.abc import Iterable, Sequence
from itertools import dropwhile

from memctl.domain.shell.commands import LONGEST, MOST_PARTS, parts_of
from memctl.domain.support import patterns

_STANDARD = frozenset(
    (
        *("test", "tests", "build", "lint", "format", "fmt", "check", "checks", "typecheck", "type-check", "generate"),
        *("docs", "clean", "all", "coverage", "unit", "integration", "e2e", "compile", "validate", "verify", "vet"),
        "fix",
    )
)
"""What the scripts of a project are called that check and build it."""

_GIT = frozenset(("add", "commit", "status", "diff", "log", "show", "mv", "blame", "ls-files", "rev-parse", "describe"))

_ANY = (
    *("pytest", "ruff", "black", "isort", "mypy", "flake8", "pylint", "pyright", "gofmt", "goimports", "golangci-lint"),
    *("staticcheck", "rustfmt", "tsc", "eslint", "prettier", "biome", "jest", "vitest", "mocha", "rspec", "rubocop"),
    *("phpunit", "clang-format", "shellcheck", "markdownlint", "stylelint", "ctest"),
    *("cd", "ls", "cat", "head", "tail", "grep", "rg", "wc", "sort", "uniq", "diff", "pwd", "true", "echo", "which"),
)
_OF_TARGETS = frozenset(("make", "just", "mvn", "mvnw", "gradle", "gradlew", "rake", "ninja"))
"""Programs that do each word they are given."""
_OF_SCRIPTS = frozenset(("npm", "pnpm", "yarn", "bun"))
"""Programs that give a script the words behind its name."""

_ALLOWED: dict[str, frozenset[str] | None] = {
    **dict.fromkeys(_ANY),
    **dict.fromkeys(_OF_TARGETS | _OF_SCRIPTS, _STANDARD),
    "go": frozenset(("test", "build", "vet", "fmt", "clean", "version")),
    "cargo": frozenset(("test", "build", "check", "clippy", "fmt", "clean")),
    "dotnet": frozenset(("test", "build", "format", "clean")),
    "terraform": frozenset(("fmt", "validate")),
    "mix": frozenset(("test", "compile", "format")),
    "git": _GIT,
}
"""Programs, each with the subcommands that are allowed; None: with whatever words."""

_RUNNERS = frozenset(("mocha", "pytest", "rspec", "phpunit"))
_OF_TESTS = patterns.compile(r"tests?|spec", patterns.I)
_WRITES = {"jest": frozenset(("-u",)), "vitest": frozenset(("-u",)), "rubocop": frozenset(("-A",))}
"""Options of programs that are allowed of others."""

_MODULES = frozenset(("pytest", "unittest", "ruff", "black", "isort", "mypy", "flake8", "pylint", "compileall"))
"""What may follow `python -m`."""

_REACHES = patterns.compile(
    r":/|[$`<>~@\\]|^\w+=|(?:^|[^.])\.\.(?:/|$)|^/|exec|config|plugin|script|init|import|require|loader|rootdir|hook|regist|"
    r"index|proxy|no-verify|force|hard|upload|publish|site-packages|\.venv|node_modules[\\/]\.",
    patterns.I,
)
"""What a word of an allowed command may not hold: an address, a substitution, what runs or loads something else."""

_LOOKERS = frozenset(("cat", "head", "tail", "grep", "rg", "sort", "uniq", "diff", "git"))
_OF_SECRETS = patterns.compile(
    r"\.env(?:rc)?(?:$|[^A-Za-z])|\.(?:pem|key|p12|pfx|jks|keystore|kdbx|tfvars|tfstate|ppk)$|"
    r"(?:^|[/:])(?:id_(?:rsa|dsa|ecdsa|ed25519)|\.(?:netrc|pgpass|npmrc|pypirc|htpasswd|git-credentials|my\.cnf|aws|ssh|kube|"
    r"gnupg|docker|vault-token)|shadow|environ|kubeconfig|wp-config)|secret|credential|passw|token|"
    r"service[-_. ]?account|private[-_]?key|\.(?:asc|gpg|age|pkcs8|der|p8)$|"
    r"(?:^|[/_.:-])(?:o?auth2?|keys?|cookies?|session|login|vault|adc)\.(?:json|ya?ml|toml|ini|txt|db|sqlite3?)$",
    patterns.I,
)
"""Files whose contents a program that looks at them would print."""
_EXAMPLE = patterns.compile(r"\.(?:example|sample|template|dist)$")

_SETTINGS = patterns.compile(r"^(?:CI|TZ|LANG|LC_ALL|NO_COLOR|FORCE_COLOR|DEBUG|RUST_BACKTRACE|NODE_ENV)=[\w.:-]*$")
_QUIET = patterns.compile(r"(?:2>&1|&?>/dev/null|2>/dev/null)")


_COMMENT = patterns.compile(r"(?:^|\s)#")
_GLOB = patterns.compile(r"^[^'\"]*[*?\[{]")


def harmless(command: str) -> bool:
    """Whether every part of a command line is one that only checks, builds, formats or looks."""
    parts = parts_of(_QUIET.sub(" ", command))
    if not 0 < len(parts) < MOST_PARTS or len(command) > LONGEST:
        return False  # there is none, or nobody looked at all of it
    return all(_allowed(part.words) for part in parts) and not _redirected(command)


def _redirected(command: str) -> bool:
    """Whether it reads or writes elsewhere, or says something beside what it does."""
    plain = _QUIET.sub(" ", command)
    return any(sign in plain for sign in (">", "<", "`", "$(")) or _COMMENT.search(plain) is not None


def _allowed(words: tuple[str, ...]) -> bool:
    words = tuple(dropwhile(_SETTINGS.match, words))
    if not words or any(map(_REACHES.search, words)):
        return False
    program, rest = words[0].removeprefix("./"), words[1:]
    if program in ("python", "python3") and rest[:1] == ("-m",):
        return not _MODULES.isdisjoint(rest[1:2]) and _has_safe_options(rest[2:])
    if program not in _ALLOWED or (words[0] != program and program not in ("gradlew", "mvnw")):
        return False
    named = [word for word in rest if word[0] != "-"]
    if not _has_safe_options(rest) or _does_more(program, rest, named):
        return False
    subcommands, asked = _ALLOWED[program], _subcommands(program, named)
    return subcommands is None or (bool(asked) and all(subcommands.issuperset(word.split(":")) for word in asked))


def _has_safe_options(words: Iterable[str]) -> bool:
    return all(word[0] != "-" or _OPTION.match(word) for word in words)


def _does_more(program: str, words: Sequence[str], named: Sequence[str]) -> bool:
    """Whether these words make an allowed program do what it is not allowed for."""
    if program == "uniq" and len(named) > 1:
        return True  # it writes the second
    if program in _RUNNERS and any(_FILE.search(word) and not _OF_TESTS.search(word) for word in named):
        return True  # it runs any file
    if program in _WRITES and not _WRITES[program].isdisjoint(words):
        return True  # it takes what comes for what was wanted
    if program == "git" and words[:1] == ("commit",) and "-n" in words:
        return True  # without the hooks
    return program in _LOOKERS and any(map(_may_show_secrets, words))


def _subcommands(program: str, named: Sequence[str]) -> Sequence[str]:
    """Those of the words behind a program, options aside, that say what it is to do."""
    if program in _OF_TARGETS:
        return named
    if program not in _OF_SCRIPTS:
        return named[:1]
    first, *rest = named[named[:1] == ["run"] :] or [""]
    return [first, *(word for word in rest if not _FILE.search(word))]


def _may_show_secrets(word: str) -> bool:
    plain = word.replace("'", "").replace('"', "")
    return _GLOB.search(word) is not None or (_OF_SECRETS.search(plain) is not None and not _EXAMPLE.search(plain))


_FILE = patterns.compile(r"^[\w./-]*\w\.[A-Za-z]{1,5}$")
"""A file that a script is to work on; its name is no other script's."""


_OPTION = patterns.compile(
    r"^(?:-[abiklnqsvwAuE]|-vv+|-run|-race|-testcache|-short|-count=?\d*|-j\d*|-x|--(?:fix|check|quiet|verbose|write|watch=false|run"
    r"|coverage|workspace|all|all-targets|release|lib|tests|noEmit|no-fix|no-cov|tb=\w+|staged|cached|amend|no-edit"
    r"|continue|abort|stat|oneline|name-only|color|no-color|unsafe-fixes|diff|list|force-exclude|no-cache|last-failed"
    r"|maxfail=\d+|passWithNoTests|ci|silent|bail))$"
)
"""Options that only say how much is checked, and how it is shown; none that names a file or a program."""


_STARTERS = (
    *(("uv", "run"), ("poetry", "run"), ("bundle", "exec"), ("pipenv", "run"), ("hatch", "run"), ("rye", "run")),
    *(("pdm", "run"), ("python", "-m"), ("python3", "-m"), ("python",), ("python3",), ("py",), ("node",), ("tsx",)),
)
"""Words before a program that is there; none fetches one."""
_STARTING = frozenset(("npx", *(word for each in _STARTERS for word in each)))

_IN_ENVIRONMENT = patterns.compile(r"^(?:\./)?\.?v?env/(?:bin|Scripts)/([\w.-]+)$")
_HOW_SHOWN = patterns.compile(r"^(?:-[qv]+|--(?:quiet|verbose|silent|color|no-color))$")

_GUARDS = patterns.compile(
    r"^(?:-[a-zA-Z]|-?-(?:dry|no|check|diff|plan|what-?if|sim|just|preview|pretend|test|list|show|print|confirm|interactive|prompt"
    r"|ask|safe|read|only|until|limit|max|exclude|skip|staged|cached|soft|keep|local|validate|verify|help|version|offline"
    r"|frozen|locked|sandbox|restrict)[\w-]*(?:=.*)?)$",
    patterns.I,
)
"""Options that keep a command from doing something, or may: whoever wrote them meant it."""

_ENDS_SOMETHING = patterns.compile(
    r"(?:^|[^A-Za-z])(?:rm|rmdir|del(?:ete|etes)?|remove|destroy|drop|down|downgrade|purge|prune|wipe|clean(?:up)?|reset|revert"
    r"|rollback|restore|truncate|erase|evict|drain|kill|terminate|stop|shutdown|flush|expire|revoke|publish|deploy|release|push"
    r"|upload|send|submit|ship|promote|apply|migrate|upgrade|install|uninstall|merge|sync|force|hard|yes)(?:[^A-Za-z]|$)|^-[fy]+$",
    patterns.I,
)
"""What takes something away or gives something away, once and for all."""


def says_it_otherwise(failed: str, works: str, unknown: str = "") -> bool:
    """Whether a command only says in another way what the one that failed says. Each part of it checks or builds, or is
    made of the failed one's words in their order: what is new in it starts what is there, says what is shown, or names
    a file of it from nearer. Nothing is left out but the option that is `unknown` to its program, where it has no value
    and keeps it from nothing; nothing is ended by it, and nothing runs what another part prints."""
    before = [word.strip("\"'") for part in parts_of(failed) for word in part.words]
    needed = {word.strip("\"'") for part in parts_of(failed) if not _allowed(part.words) for word in part.words}
    parts = parts_of(_QUIET.sub(" ", works))
    after = [[word.strip("\"'") for word in part.words] for part in parts]
    words = {word for part in after for word in part}
    if harmless(failed) or _redirected(works) or not all(_may_go(word, words, unknown) for word in needed - words):
        return harmless(works)
    return bool(after) and all(
        _allowed(tuple(words)) or ("|" not in part.after and _as_before(words, before))
        for words, part in zip(after, parts, strict=True)
    )


def _may_go(word: str, words: set[str], unknown: str) -> bool:
    """Whether a command may be said without a word: the option that is unknown, what only started it, or a file that is
    named from nearer or farther. Any other option may say where, as whom, or how carefully."""
    if _HOW_SHOWN.match(word) or word in _STARTING:
        return True
    if word[:1] == "-":
        return word == unknown and not _GUARDS.search(word)
    return bool(word) and any(each.endswith(f"/{word}") or word.endswith(f"/{each}") for each in words)


def _as_before(words: list[str], before: list[str]) -> bool:
    if any(_ENDS_SOMETHING.search(word) for word in words):
        return False
    known = set(before)
    at = 0 if words[0] in known else next((len(each) for each in _STARTERS if tuple(words[: len(each)]) == each), 0)
    files = {word.rpartition("/")[2] for word in known}
    places = [before.index(word) for word in words[at:] if word in known]
    return bool(words[at:]) and places == sorted(places) and all(_is_known(word, known, files) for word in words[at:])


def _is_known(word: str, known: set[str], files: set[str]) -> bool:
    if word in known or _HOW_SHOWN.match(word):
        return True
    if found := _IN_ENVIRONMENT.match(word):
        return found[1] in ("python", "python3") or found[1] in files
    # A file seen from nearer: not one of that name that lies elsewhere.
    return not _REACHES.search(word) and "." in word.strip(".") and any(each.endswith(f"/{word}") for each in known)
