"""Strategies by rule (ReasoningBank's kind): what work teaches for other work in the same project, from what was run.

Only what the work itself shows, and what holds beyond it: a call that does not work here and the one that does; what
has to be run when a command fails so; a lint rule that is enforced here; that a commit runs checks. Precision before
recall: a command that names this task's files, tests or texts teaches nobody, and nor does what every agent knows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memctl.domain.bounded import clipped, one_line
from memctl.domain.event import derived_id
from memctl.domain.facts import Lesson
from memctl.domain.shell import heads_of, parts_of
from memctl.domain.text import canonical

MOST = 3
"""Strategies that rules read out of one trajectory, at most; as many again may be recorded of it."""

LONGEST_COMMAND, LONGEST_MESSAGE = 60, 140

ENOUGH_SESSIONS = {"check": 2}
"""Sessions that must have shown a lesson of that kind; one, of other kinds."""

_AROUND = re.compile(r"^cd \S+ *(?:&&|;) *| 2>&1\b| *\|\| true\b| *\| *(?:head|tail|cat)\b[^|;&]*$")
_OF_THIS_TASK = re.compile(
    r"[\"'`$\n<>*{}]|(?<![\w:])/\w|~/|\w:\\|\b[0-9a-f]{7,}\b|\d{3,}|\.\w+/|/\.{3}|\.\w{1,5}(?=\s|$)"
)
"""What makes a command one task's own: texts, paths of a machine, hashes, numbers, names of files."""
_NARROWED = re.compile(r"\s(?:-run|-k|-t|--grep|-g|--filter|--tests|--testPathPattern|--testNamePattern)[= ]|::")
_EVERYBODYS = re.compile(r"(?:git|gh|cd|ls|cat|sed|grep|find|rm|mv|cp|mkdir|echo|curl|head|tail|which|export|source)\b")
"""Programs whose everyday errors teach an agent nothing of a project."""
_CHECKERS = re.compile(
    r"(golangci-lint|biome|eslint|ruff|mypy|pylint|flake8|markdownlint|clippy|rubocop|stylelint|shellcheck)/(.+)"
)
_ONE_OF = re.compile(r"(?!(?:error|warning|note|info|hint): )([A-Za-z][\w-]{2,40}): ")
"""How a rule that is many says which of them was broken: gosec's `G304: …`, gocritic's `elseif: …`."""
_NO_LESSON = re.compile(
    r"typecheck|format|fmt|unused|ineffassign|undefined|syntax|pars(?:e|ing)|import|nolintlint|dupl|maintidx|funlen"
    r"|cyclo|complexity",
    re.I,
)
"""Rules that every agent keeps, and measures, whose message tells no way."""
_LONG_PATH = re.compile(r"(?<![\w.])~?(?:/[\w.@+-]+){3,}")


def key_of(lesson: Lesson) -> str:
    """Equal for the same lesson in one project: the rule's own name for it, else its title but for form."""
    return lesson.key or canonical(lesson.title) or lesson.title.lower()


def strategy_id(location: str, lesson: Lesson) -> str:
    """Key of the strategy that a lesson is, in the project at a location."""
    return str(derived_id(f"strategy:{location}\n{key_of(lesson)}"))


def enough_sessions(lesson: Lesson) -> int:
    """Sessions that must have shown a lesson before it is told."""
    return ENOUGH_SESSIONS.get(lesson.key.partition(":")[0], 1) if lesson.key else 1


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
    )


def of_call(failed: str, works: str, message: str) -> Lesson | None:
    """A call that was wrong in itself, and the one that worked in its place; None where the error says so itself."""
    failed, works = _bare(failed), _bare(works)
    if failed == works or not (_general(failed) and _general(works)) or _names_what_to_drop(message, failed, works):
        return None
    said = _said(message)
    return Lesson(
        key=f"call:{failed}\n{works}",
        title=f"Run `{works}`, not `{failed}`",
        description=f"Before running `{failed}` in this project.",
        content=f"`{failed}` fails here ({said}); `{works}` works.",
        domain="commands",
        from_failure=True,
        confidence=0.7,
    )


def of_remedy(failed: str, ran: Sequence[str], message: str, shown: str = "") -> Lesson | None:
    """A command failed until another was run: nothing was edited. None where the error (`shown`, as far as it was kept)
    says so itself."""
    failed, remedies = _head(failed), [_bare(each) for each in ran]
    said = _said(message)
    if len(remedies) != 1 or not _general(remedies[0]) or not failed or len(said) < 12 or remedies[0] in shown:
        return None
    return Lesson(
        key=f"remedy:{failed}\n{remedies[0]}",
        title=f"`{remedies[0]}` mends `{failed}`: {one_line(said, 70)}",
        description=f"When `{failed}` fails with: {said}",
        content=f"`{failed}` failed with “{said}” until `{remedies[0]}` was run; nothing had to be edited.",
        domain="commands",
        confidence=0.65,
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


def of_check(error_types: Sequence[str], command: str, message: str) -> Lesson | None:
    """A checker found something that was then mended: its rule is kept here. (What it finds and nobody mends may have
    stood there for years. What a commit's hook found is `of_refusal`'s.)"""
    checker, rule = _checked(error_types)
    said = _said(message)
    if one_of := _ONE_OF.match(said):
        rule = f"{rule}/{one_of[1]}"
    if not checker or _hook_of(command) or _NO_LESSON.search(rule) or len(said) < 12:
        return None
    return Lesson(
        key=f"check:{checker}/{rule}",
        title=f"{checker} enforces `{rule}` here",
        description="When writing code in this project.",
        content=f"{checker} refused, for one: “{said}”. Keep to it from the start.",
        domain="code style",
        from_failure=True,
        confidence=0.6,
    )


def _checked(error_types: Sequence[str]) -> tuple[str, str]:
    """The checker, and its rule; empty where no checker found the error."""
    found = next((match for name in error_types if (match := _CHECKERS.fullmatch(name))), None)
    return (found[1], found[2]) if found is not None else ("", "")


def _names_what_to_drop(message: str, failed: str, works: str) -> bool:
    """Whether a call works once it lacks some words, all of which the error named."""
    tried, kept_words = failed.split(), works.split()
    dropped = [word.lstrip("-") for word in tried if word not in kept_words]
    return bool(dropped) and set(kept_words) <= set(tried) and all(word in message for word in dropped)


def _bare(command: str) -> str:
    line = command.strip()
    while (cut := _AROUND.sub("", line).strip()) != line:
        line = cut
    return line


def _general(command: str) -> bool:
    """Whether a command is one line that anybody in the project may want to run."""
    return (
        0 < len(command) <= LONGEST_COMMAND
        and len(parts_of(command)) == 1
        and not _OF_THIS_TASK.search(command)
        and not _NARROWED.search(command)
        and not _EVERYBODYS.match(command)
    )


def _head(command: str) -> str:
    heads = [head for head in heads_of(command) if not _EVERYBODYS.match(head)]
    return heads[0] if len(heads) == 1 else ""


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
