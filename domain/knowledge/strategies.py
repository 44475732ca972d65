"""Strategies by rule (ReasoningBank's kind): what work teaches for other work in the same project, from what was run.

Only what the work itself shows, and what holds beyond it: a lint rule that is enforced here, and how what is meant is
excused from it; what finds what has to be mended; what is run before a commit, and how one test is; that a commit runs
checks; what the shell trips over. (Calls that do not work here are known commands.) Precision before recall: what every
agent knows teaches nobody.
"""

from collections.abc import Collection, Sequence
from pathlib import PurePosixPath

from memctl.domain.events.event import derived_of
from memctl.domain.events.facts import Edit, Lesson
from memctl.domain.shell.commands import heads_of, parts_of, proves, runner_of
from memctl.domain.shell.project_commands import ProjectCommand, way_of
from memctl.domain.support import patterns
from memctl.domain.support.bounded import clipped, one_line
from memctl.domain.support.remembered import remembered
from memctl.domain.support.text import canonical

MOST = 3
"""Strategies that rules read out of one trajectory, at most; as many again may be recorded of it."""

VERIFICATION = "verification"
"""The domain of what bears on every change of a project, whatever the task."""

MOST_STEPS = 5
"""Commands that are listed as what comes before a commit."""

LONGEST_MESSAGE = 140
"""Characters of a message that is quoted: a longer one is of that one case."""

SHORTEST_MESSAGE = 12
"""Characters of an error's first line below which it does not show what was wrong."""

BY_HAND, A_HABIT = 2, 3
"""Sessions that must show a checker's rule where nothing of the project's own ran the checker, and what is a habit."""

OF_CHECKER = patterns.compile(
    r"(golangci-lint|biome|eslint|ruff|mypy|pylint|flake8|markdownlint|clippy|rubocop|stylelint|shellcheck)/(.+)"
)
"""Types of errors that a checker found: which, and its rule."""
_ONE_OF = patterns.compile(r"(?!(?:error|warning|note|info|hint): )([A-Za-z][\w-]{2,40}): ")
"""How a rule that is many says which of them was broken: gosec's `G304: …`, gocritic's `elseif: …`."""
NO_LESSON = patterns.compile(
    r"typecheck|format|fmt|unused|ineffassign|undefined|syntax|pars(?:e|ing)|import|nolintlint|dupl|maintidx|funlen"
    r"|cyclo|complexity",
    patterns.I,
)
"""Rules that every agent keeps, and measures, whose message shows no way to mend them."""
_NARROWING = patterns.compile(r"(?:-run|-k|-t|--grep|-g|--filter|--tests|--testPathPattern|--testNamePattern)(?:=|\Z)")
_OF_BSD = patterns.compile(
    r"(cat|sed|grep|date|stat|ls|find|xargs|sort|tail|head|du|base64|readlink|mktemp|touch|cp|tr)"
    r": illegal option -- (\w)"
)
"""BSD's words; GNU's tools say `invalid option`."""
_EXCUSE = patterns.compile(
    r"//\s?nolint\b.*|#\s?noqa\b.*|(?://|/\*|<!--) ?(?:eslint-disable|biome-ignore|markdownlint-disable).*"
    r"|# ?(?:type: ignore|pylint: ?disable|rubocop: ?disable|shellcheck disable).*|#\[allow\(.*"
)
"""Comments that make checkers ignore a line."""
_SETTINGS = frozenset((".toml", ".cfg", ".ini", ".json", ".jsonc", ".yml", ".yaml"))
"""Endings of files in which checkers have their settings."""
_CODE = patterns.compile(r"\b[A-Z]{1,4}\d{3,4}\b")
_LONG_PATH = patterns.compile(r"(?<![\w.])~?(?:/[\w.@+-]+){3,}")


def key_of(lesson: Lesson) -> str:
    """Equal for the same lesson in one project: the rule's own name for it, else its title but for form."""
    return lesson.key or canonical(lesson.title) or lesson.title.lower()


def strategy_id(location: str, lesson: Lesson) -> str:
    """Key of the strategy that a lesson is, in the project at a location."""
    return derived_of("strategy", location, key_of(lesson))


def kept(lesson: Lesson) -> Lesson:
    """A lesson as far as facts and rows keep it."""
    return Lesson(
        title=clipped(lesson.title, 160),
        description=clipped(lesson.description, 300),
        content=clipped(lesson.content, 1_000),
        domain=clipped(lesson.domain, 40),
        from_failure=lesson.from_failure,
        confidence=round(min(max(lesson.confidence, 0.0), 1.0), 4) + 0.0,
        key=clipped(lesson.key, 200),
        sessions=min(max(lesson.sessions, 1), 32),
    )


def of_refusal(error_types: Sequence[str], command: str) -> Lesson | None:
    """A checker refused what was to be committed or pushed: that runs it."""
    checker, _ = _checked(error_types)
    hook = _hook_of(command) if checker else ""
    if not hook:
        return None
    return Lesson(
        key=f"hook:{hook}\n{checker}",
        title=f"`{hook}` runs {checker} here and refuses what it finds",
        description=f"Before `{hook}` in this project.",
        content=f"A hook of `{hook}` runs {checker}: run it and mend what it finds first.",
        domain="version control",
        from_failure=True,
        confidence=0.7,
    )


def of_check(error_types: Sequence[str], command: str, message: str, edits: Sequence[Edit] = ()) -> Lesson | None:
    """A checker found something that was then mended: its rule is kept here. (What it finds and nobody mends may have
    stood there for years. What a commit's hook found is `of_refusal`'s.)

    One session shows it where a script of the project ran the checker, as the project wants it run.
    """
    checker, rule = _checked(error_types)
    said = _said(message)
    if one_of := _ONE_OF.match(said):
        rule = f"{rule}/{one_of[1]}"
    if not checker or _hook_of(command) or NO_LESSON.search(rule) or len(said) < SHORTEST_MESSAGE:
        return None
    if _switched_off(rule, edits):
        return None
    return Lesson(
        key=f"check:{checker}/{rule}",
        title=f"{checker} enforces `{rule}` here",
        description="When writing code in this project.",
        content=f"{checker} refused, for one: “{said}”. {_excused(rule, edits) or 'Keep to it from the start.'}",
        domain="code style",
        from_failure=True,
        confidence=0.6,
        sessions=1 if _own_checks(command) else BY_HAND,
    )


def of_gate(error_types: Sequence[str], command: str, culprits: Collection[str], message: str) -> Lesson | None:
    """What a checker found, run by a script of the project (one of the `culprits`, heads of the command), was then
    mended by edits. (It is no news that tests find something, or that what does not compile is found.)"""
    checker, rule = _checked(error_types)
    if not checker or rule == "typecheck":
        return None
    found = [way.command for head, way in _own_checks(command) if head in culprits and proves(head) == "check"]
    said = _said(message)
    if len(found) != 1 or len(said) < SHORTEST_MESSAGE:
        return None
    return Lesson(
        key=f"gate:{found[0]}",
        title=f"Run `{found[0]}` before a change is done: it finds what has to be mended",
        description="Before saying that a change to this project is finished.",
        content=f"Run `{found[0]}` before a change is done: it has refused some here, the last time for “{said}”.",
        domain=VERIFICATION,
        confidence=0.6,
        sessions=A_HABIT,
    )


def of_commit(passed: Sequence[str]) -> Lesson | None:
    """Commands of the project that passed before a commit, in the order in which they last did."""
    if len(passed) < 2:
        return None
    first, *rest = (f"`{command}`" for command in passed[-MOST_STEPS:])
    return Lesson(
        key="before a commit",
        title=f"Before a commit here: {first}, then {', '.join(rest)}",
        description="Before committing or pushing a change to this project.",
        content=f"Before a commit run {first}, then {', '.join(rest)}: on the way to the last one these passed.",
        domain=VERIFICATION,
        confidence=0.6,
        sessions=A_HABIT,
    )


def of_one_test(command: str) -> Lesson | None:
    """A script of the project ran the tests of one name alone, and they passed."""
    for part in parts_of(command):
        at = next((n for n, word in enumerate(part.words) if _NARROWING.match(word)), 0)
        way = way_of(tuple(word for word in part.words[:at] if word != "--")) if at else None
        if way is None or not way.own or not runner_of(part.head):
            continue
        flag = part.words[at].partition("=")[0]
        dashes = "-- " if "--" in part.words[:at] else ""
        form = f"{way.command} {dashes}{flag}{'=' if '=' in part.words[at] else ' '}NAME"
        return Lesson(
            key=f"one test:{form}",
            title=f"One test alone runs with `{form}`",
            description="When one test of this project is worked on.",
            content=f"`{form}` passes the name on to the runner, and runs nothing else.",
            domain="commands",
            confidence=0.6,
            sessions=BY_HAND,
        )
    return None


def of_machine(error_types: Sequence[str], message: str) -> Lesson | None:
    """What only zsh, or only the tools of BSD and macOS, refuse: commands are mostly written for others."""
    if "usage" in error_types and (tool := _OF_BSD.match(message)):
        return Lesson(
            key="machine:bsd tools",
            title=f"The tools here are BSD's (macOS), not GNU's: `{tool[1]} -{tool[2]}` does not exist",
            description="Before using an option of sed, grep, date, stat, cat or the like.",
            content=f"`{tool[1]}` refused `-{tool[2]}` (“{_said(message)}”): use options that BSD's tools have too.",
            domain="commands",
            from_failure=True,
            confidence=0.7,
        )
    if "shell" not in error_types or not message.startswith("no matches found: "):
        return None
    return Lesson(
        key="machine:zsh patterns",
        title="Commands run in zsh here: quote what holds `?`, `*` or `[`",
        description="When a command names a pattern that may match no file, or an address with a query.",
        content=f"zsh runs nothing of a command where a pattern matches no file (“{_said(message)}”): put it in quotes,"
        " or make it match nothing quietly with `*(N)`.",
        domain="commands",
        from_failure=True,
        confidence=0.7,
    )


def steps_of(command: str) -> tuple[str, ...]:
    """What a command does of the project's own checks and tests, in the form that all their runs share."""
    return tuple(way.command for _, way in _own_checks(command))


@remembered(256)
def _own_checks(command: str) -> tuple[tuple[str, ProjectCommand], ...]:
    """Parts of a command that test, check or build by a script of the project: their heads, and what they are."""
    return tuple(
        (part.head, way)
        for part in parts_of(command)
        if proves(part.head) and (way := way_of(part.words)) is not None and way.own
    )


def _excused(rule: str, edits: Sequence[Edit]) -> str:
    """How what broke a checker's rule was left as it is, the rule being named; empty where it was mended."""
    names = {rule.partition("/")[0], rule.rpartition("/")[2]} - {"lint"}
    for edit in edits:
        for line in edit.after.splitlines():
            found = _EXCUSE.search(line)
            if not found or found[0] in edit.before or not any(name in found[0] for name in names):
                continue
            if names.issuperset(_CODE.findall(found[0])):  # not for another rule of the same checker
                return f"Where it is meant so, it is excused: `{one_line(found[0], 80)}`."
    return ""


def _switched_off(rule: str, edits: Sequence[Edit]) -> bool:
    """Whether the way past a checker's rule was its settings, which name that rule since."""
    name = rule.rpartition("/")[2]
    for edit in edits:
        path = PurePosixPath(edit.path)
        if path.suffix in _SETTINGS or ".config." in path.name or path.name.endswith("rc"):
            before = set(edit.before.splitlines())
            if any(name in line and line not in before for line in edit.after.splitlines()):
                return True
    return False


def _checked(error_types: Sequence[str]) -> tuple[str, str]:
    """The checker, and its rule; empty where no checker found the error."""
    found = next((match for name in error_types if (match := OF_CHECKER.fullmatch(name))), None)
    return (found[1], found[2]) if found is not None else ("", "")


def _hook_of(command: str) -> str:
    """`git commit` or `git push`, where that alone can have run a check."""
    heads = heads_of(command)
    if not heads or not all(head.startswith("git ") for head in heads):
        return ""
    return next((head for head in ("git push", "git commit") if head in heads), "")


def _said(message: str) -> str:
    """The first line of an error, without paths of this machine."""
    first = next((line.strip() for line in message.splitlines() if line.strip()), "")
    short = _LONG_PATH.sub(lambda match: "…/" + "/".join(match[0].split("/")[-2:]), first)
    return one_line(short, LONGEST_MESSAGE).strip(" :")
