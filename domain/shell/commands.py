"""What a shell command is: its parts, their heads, whether they run tests, only read, or change things.

A head is program and subcommand without paths and options: `go test`, `npm run build`, `deploy.sh`. Wrappers
(`sudo`, `timeout 60`, `npx`, `uv run`) and settings (`cd`, `export`, `X=1`) are seen through.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from memctl.domain.shell.programs import (
    BUILDING,
    CHANGING,
    CHECKING,
    IN_PLACE,
    INTERPRETERS,
    OPTIONS_WITH_VALUE,
    READERS,
    READING_HEADS,
    RUNNERS_OF_TOOLS,
    RUNS_SCRIPTS,
    SETTING,
    SYNONYMS,
    TESTING,
    TWO_LEVELS,
    WITH_SUBCOMMAND,
    WRAPPERS,
)
from memctl.domain.support import patterns
from memctl.domain.support.literals import mentions
from memctl.domain.support.remembered import remembered

LONGEST = 6_000
"""Characters of a command that are looked at: what follows is the body of a document or script."""

MOST_PARTS = 64
"""Simple commands that are; what real sessions run has below twenty."""


class Part(NamedTuple):
    """One simple command of a line. `after` is the operator before it: empty, `&&`, `||`, `;`, `|` or `&`."""

    words: tuple[str, ...]
    head: str
    after: str = ""


_HEREDOC = patterns.compile(r"<<-?\s*(?:'(\w+)'|\"(\w+)\"|(\w+))([^\n]*)\n")
_TOKEN = patterns.compile(
    # Blanks, continued lines and comments, and what stands behind them.
    r"""(?:[ \t\r]|\\\n|\#[^\n]*)*(?:
        (?P<redirect>\d*(?:>>?|<<<|<)&?-?\s*(?:"[^"]*"|'[^']*'|[^\s;&|<>()]+)?|&>>?\s*[^\s;&|]+)
      | (?P<op>&&|\|\||\|&|[;&|\n()])
      | (?P<word>(?:[^\s'"\\;&|<>()`$]+
          |'[^']*'?|"(?:[^"\\]+|\\.)*"?|\$\((?:[^()]+|\([^()]*\))*\)?|`[^`]*`?|\\.|[^\s'"\\;&|<>()`])+)
      | . | \z)""",
    patterns.X | patterns.S,
)
_VARIABLE = patterns.compile(r"\$\w")
_ASSIGNMENT = patterns.compile(r"[A-Za-z_]\w*\+?=")


def without_documents(command: str) -> str:
    """The command line without the bodies of its here-documents."""
    pieces: list[str] = []
    end = 0
    for document in _HEREDOC.finditer(command) if "<<" in command else ():
        if document.start() >= end:
            pieces += command[end : document.start()], f" {document[4]}\n"
            end = _document_end(command, document.end(), document[1] or document[2] or document[3])
    return "".join([*pieces, command[end:]])


def _document_end(command: str, at: int, word: str) -> int:
    """Where a here-document ends whose body begins there: behind the word on a line of its own."""
    while at < len(command):
        line_end = command.find("\n", at) % (len(command) + 1)
        line = command[at:line_end]
        bare = line.lstrip(" \t")
        if bare.startswith(word) and (len(bare) == len(word) or bare[len(word)].isspace() or bare[len(word)] == ")"):
            return at + len(line) - len(bare) + len(word)
        at = line_end + 1
    return len(command)


@remembered(1024)
def parts_of(command: str) -> tuple[Part, ...]:
    """The simple commands of a command line, in order. Bodies of here-documents are left out."""
    text = without_documents(command[:LONGEST])
    found: list[Part] = []
    words: list[str] = []
    after = ""
    for token in _TOKEN.finditer(text):
        if word := token["word"]:
            words.append(word)
        elif operator := token["op"]:
            if words:
                found.append(Part(tuple(words), _head(words), after))
                words = []
            operator = operator.strip("()") or ";"
            after = ";" if operator == "\n" else "|" if operator == "|&" else operator
        if len(found) == MOST_PARTS:
            return tuple(found)
    if words:
        found.append(Part(tuple(words), _head(words), after))
    return tuple(found)


def _bare(word: str) -> str:
    if len(word) > 1 and word[0] in "'\"" and word[-1] == word[0]:
        return word[1:-1]
    return word


def _name(word: str) -> str:
    name = _bare(word).replace("\\", "/").rstrip("/").rpartition("/")[2].lower()
    return name.removesuffix(".exe")


def _past_options(words: list[str], at: int, program: str) -> int:
    """Index of the first word from `at` on that is no option (nor an option's value)."""
    takes = OPTIONS_WITH_VALUE.get(program, set())
    while at < len(words) and words[at].startswith(("-", "+")):
        at += 2 if words[at] in takes else 1
    return at


def _head(words: list[str]) -> str:
    at = 0
    if words[0][0:1] == "$" and _VARIABLE.match(words[0]) and words[1:2] in ([], ["="], ["+="]):
        # PowerShell shows a variable, or sets one to what a command prints, or to a value.
        at = len(words) if words[2:] and words[2].startswith(("'", '"', "$", "@", "[")) else 2
    while at < len(words):
        word = _bare(words[at])
        if ("=" in word and _ASSIGNMENT.match(word)) or word in WRAPPERS:
            at = _past_options(words, at + 1, word)
            continue
        if word in ("timeout", "gtimeout"):
            at = _past_options(words, at + 1, "timeout") + 1
            continue
        program = SYNONYMS.get(_name(word), _name(word))
        second = _bare(words[at + 1]) if at + 1 < len(words) else ""
        taken = RUNNERS_OF_TOOLS.get(f"{program} {second}") or RUNNERS_OF_TOOLS.get(program)
        if taken:
            further = _past_options(words, at + taken, f"{program} {second}" if taken > 1 else program)
            if further < len(words):
                at = further
                continue
        if program == "wsl" and (further := _past_options(words, at + 1, program)) < len(words):
            at = further  # not by a call of its own: it may name itself a thousand times
            continue
        return _with_subcommand(program, words, at)
    return ""


def _with_subcommand(program: str, words: list[str], at: int) -> str:
    following = _past_options(words, at + 1, program)
    first = _word_at(words, following)
    if program in INTERPRETERS or program == "sh":
        return _of_interpreter(program, words, at, first)
    if program not in WITH_SUBCOMMAND or not first:
        return program
    if program in RUNS_SCRIPTS and first in RUNS_SCRIPTS[program]:
        name = _word_at(words, _past_options(words, following + 1, program))
        name = _name(name) if "/" in name else name
        return f"{program} run {name}".rstrip()
    if program in RUNS_SCRIPTS and "/" in first:
        return f"{program} {_name(first)}"
    head = f"{program} {first}" if _PLAIN_WORD.fullmatch(first) else program
    if first in TWO_LEVELS.get(program, ()):
        second = _word_at(words, _past_options(words, following + 1, program))
        if _SUBCOMMAND.fullmatch(second):
            head += f" {second}"
    return head


def _of_interpreter(program: str, words: list[str], at: int, first: str) -> str:
    """An interpreter's head: with the module, the script or the command line that it is given; `first` is the word
    behind its options."""
    if program in ("python", "python3"):
        following = _past_options(words, at + 1, program)
        if "-m" in words[at + 1 : following + 1]:
            module = words.index("-m", at) + 1
            name = _word_at(words, module)
            if name in ("pytest", "mypy", "ruff", "black", "pip", "tox", "nox"):
                return _with_subcommand(name, words, module)
            return f"python -m {name}".rstrip()
        if any(_bare(w) == "-c" for w in words[at + 1 : at + 3]):
            return "python -c"
    if program == "node" and "--test" in words:
        return "node --test"
    if program == "sh" and ("-c" in words[at + 1 : at + 3] or "-lc" in words[at + 1 : at + 3]):
        inner = _bare(words[-1]) if len(words) > at + 2 else ""
        return next((part.head for part in parts_of(inner) if part.head not in SETTING), "sh")
    return f"{program} {_name(first)}".rstrip() if first and not first.startswith("-") else program


def _word_at(words: list[str], at: int) -> str:
    """A word without its quotes; empty behind the last."""
    return _bare(words[at]) if at < len(words) else ""


@remembered(1024)
def heads_of(command: str) -> tuple[str, ...]:
    """Heads of what a command does, in order: settings left out, and filters behind a pipe."""
    return tuple(
        dict.fromkeys(
            part.head
            for part in parts_of(command)
            if part.head and part.head not in SETTING and not (part.after == "|" and part.head.split(" ")[0] in READERS)
        )
    )


@remembered(1024)
def head_of(command: str) -> str:
    """The canonical head: of the first part that does something, else of the first."""
    heads = heads_of(command)
    doing = next((head for head in heads if not is_reading(head)), "")
    if doing or heads:
        return doing or heads[0]
    return next((part.head for part in parts_of(command) if part.head), "")


def is_reading(head: str) -> bool:
    """Whether a head shows or looks for text: what it prints is a quotation."""
    program = head.split(" ", 1)[0]
    return program in READERS or head in READING_HEADS


def only_reads(command: str) -> bool:
    """Whether all a command does is to show text or settings."""
    return all(is_reading(head) for head in heads_of(command))


@remembered(1024)
def changes_of(command: str) -> tuple[str, ...]:
    """The parts of a command that change files, settings or what is installed, as they were written."""
    found = []
    for part in parts_of(command):
        head = part.head
        if not head or not CHANGING.match(head):
            continue
        needed = IN_PLACE.get(head) or IN_PLACE.get(head.split(" ", 1)[0])
        if needed and needed != ("*",) and not any(w == n or w.startswith(f"{n}.") for w in part.words for n in needed):
            continue
        if needed == ("*",) and len([w for w in part.words if not w.startswith("-")]) < 4:
            continue
        found.append(" ".join(part.words)[:200])
    return tuple(found)


_FILE = r"""(?:'[\w./~@+-]+'|"[\w./~@+-]+"|[\w./~@+-]+)"""
_WRITTEN = patterns.compile(
    rf"(?:^|[\s;&|])(?:cat|tee)\b[^|;&\n]*?(?:>{{1,2}}|tee (?:-a )?)\s*({_FILE})[^\n]*<<|"
    rf"<<-?\s*['\"]?\w+['\"]?\s*>{{1,2}}\s*({_FILE})"
)
_PATH = patterns.compile(r"[\w./~@+-]*[./][\w./~@+-]+")
_SUBCOMMAND = patterns.compile(r"[a-z][a-z-]*")
_PLAIN_WORD = patterns.compile(r"[\w:.@-]+")


def written_by(command: str) -> tuple[str, ...]:
    """Files that a command writes by a here-document or edits in place."""
    found: dict[str, None] = {}
    if "<<" in command:
        for match in _WRITTEN.finditer(command[:LONGEST]):
            found[(match[1] or match[2]).strip("'\"")] = None
    for words in _stream_edits(command):
        if _PATH.fullmatch(words[-1]):
            found[words[-1]] = None
    return tuple(path for path in found if not path.startswith("/dev/"))


def _stream_edits(command: str) -> list[list[str]]:
    """The words of `sed` and `perl` where they write to the files they read."""
    parts = parts_of(command) if "sed" in command or "perl" in command else ()
    editing = (part.words for part in parts if part.head.split(" ")[0] in ("sed", "perl") and len(part.words) > 2)
    return [[*map(_bare, words)] for words in editing if any(word.startswith(("-i", "-pi")) for word in words)]


_SIDES = (rf"{mark}((?:[^{mark}\\]|\\.)*){mark}((?:[^{mark}\\]|\\.)*){mark}" for mark in ("/", r"\|", "#", "@"))
_SUBSTITUTION = patterns.compile(rf"(?:^|[\s;{{\d$])s(?:{'|'.join(_SIDES)})", patterns.S)
_ESCAPED = patterns.compile(r"\^|\$\z|\\([^\w\s])")


def substitutions_of(command: str) -> dict[str, tuple[str, str]]:
    """By file what a stream editor replaced in place and by what, a substitution a line, with plain punctuation."""
    found: dict[str, tuple[str, str]] = {}
    for words in _stream_edits(command)[:20]:
        matches = [match for word in words for match in _SUBSTITUTION.finditer(word)][:20]
        sides = [[_ESCAPED.sub(lambda mark: mark[1] or "", s) for s in m.groups() if s is not None] for m in matches]
        if sides:
            before, after = ("\n".join(side) for side in zip(*sides, strict=True))
            files = [word for word in words[2:] if _PATH.fullmatch(word) and not _SUBSTITUTION.search(word)]
            found.update((file, (before, after)) for file in files[:20])
    return found


@remembered(1024)
def runner_of(head: str) -> str:
    """Which test runner a head is: pytest, go, cargo, js, script and so on; empty where it runs no tests."""
    match = TESTING.match(head)
    return (match.lastgroup or "") if match else ""


@remembered(1024)
def proves(head: str) -> Literal["test", "check", "build", ""]:
    """What a passing run of this head shows to be in order: test, check, build, or empty."""
    if runner_of(head):
        return "test"
    if CHECKING.search(head):
        return "check"
    return "build" if BUILDING.search(head) else ""


def rewrites(part: Part) -> bool:
    """Whether a part puts files into form: it writes what it finds wrong, and so shows nothing of it."""
    if any(word in ("--fix", "--write", "-w", "-i") or word.endswith((":fix", "-fix")) for word in part.words):
        return True
    return formats(part.head) and not any("check" in word or word in ("-l", "-d", "--diff") for word in part.words)


def formats(head: str) -> bool:
    return "fmt" in head or "format" in head or head in ("prettier", "black", "isort", "goimports")


_PROVING = patterns.compile(
    r"(?:^|[\s:_./-])(?:lint|vet|typecheck|type-check|tsc|mypy|pyright|check|clippy|vale|fmt|gofmt|format|ruff|biome|"
    r"eslint|prettier|golangci-lint|build|compile|bundle|make|gradle|mvn)(?:$|[\s:_./-])"
)
_PASSING_BY = patterns.compile(
    r"^(?:git|command|which|entire|memctl) |--help|--version|(?:^| )/?tmp/|/tmp/|\$|\bnull\b"
)


@remembered(1024)
def proofs_of(command: str) -> tuple[tuple[Literal["test", "check", "build"], str], ...]:
    """`proofs_in` of all parts of a command."""
    return proofs_in(parts_of(command))


def proofs_in(parts: Iterable[Part]) -> tuple[tuple[Literal["test", "check", "build"], str], ...]:
    """The parts that test, check or build, as they were written, where that may be a habit."""
    found: dict[tuple[Literal["test", "check", "build"], str], None] = {}
    for part in parts:
        kind = proves(part.head)
        if not kind or not (runner_of(part.head) or _PROVING.search(part.head)):
            continue
        words = list(part.words)
        while len(words) > 1 and (
            words[0] in ("time", "env", "nice", "if", "then", "do") or _ASSIGNMENT.match(words[0])
        ):
            del words[0]
        form = " ".join(words)
        # What is long, asks for help or writes to a scratch folder was made up for the occasion.
        if len(form) <= 80 and not _PASSING_BY.search(form):
            found[kind, form] = None
    return tuple(found)


def is_commit(command: str) -> bool:
    """Whether a command commits or pushes, or brings commits to where they were wanted."""
    if not mentions(command, ("commit", "push", "create", "merge", "pick", "continue")):
        return False
    return any(
        part.head in ("git commit", "git push", "git cherry-pick", "gh pr create", "gh pr merge")
        or (part.head in ("git rebase", "git merge") and "--continue" in part.words)
        for part in parts_of(command)
    )
