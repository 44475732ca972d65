"""How programs print their errors. Each shape finds its own kind in a text; which are believed is decided elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

STRONG, PLAIN, WRAPPER = 3, 2, 1
"""How much a shape says. STRONG: only a failure looks like that. PLAIN: believed where the command failed.
WRAPPER: a failure reported further up, believed where nothing else is found."""


class Shown(NamedTuple):
    """One error as a text shows it: characters `start` to `end`."""

    start: int
    end: int
    types: tuple[str, ...]
    message: str
    frames: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    weight: int = STRONG


class Shape(NamedTuple):
    """Looks for one kind of error, all of one weight. `hints`: one of these substrings must occur, or nothing is
    looked for."""

    name: str
    hints: tuple[str, ...]
    find: Callable[[str], Iterator[Shown]]
    weight: int = STRONG


_LIBRARY = re.compile(
    r"site-packages|dist-packages|node_modules|/usr/lib|/usr/local/(?:lib|go)|lib/python3|lib\\python|<frozen|<string>|"
    r"node:internal|internal/|/rustc/|\.cargo/registry|/go/pkg/mod|/gomodcache|/opt/homebrew/|bun:|\.rustup|importlib|"
    r"runpy\.py|(?:^|[ /])(?:java|javax|jdk|sun|kotlin|scala|org\.junit|org\.gradle|com\.sun)[./]|asyncio/|"
    r"unittest/|_pytest|pluggy"
)


def own_frames(frames: list[tuple[str, str]], limit: int = 3) -> tuple[str, ...]:
    """`file:function` of the innermost own-code frames. Frames are (path, function); both innermost first."""
    own = [f"{_base(path)}:{name}" for path, name in frames if not _LIBRARY.search(path)]
    return tuple(dict.fromkeys(own))[:limit]


def _base(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


_PREFIX = r"^(?:\[[\w:.@/-]{2,40}\] |[\w@/.-]{2,40} ?\| |[\w@/.-]{2,40}:[\w-]{2,20}: )?"
"""What task runners put before each line: `[lint:go] `, `web | `, `web:build: `."""


def at_lines(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """As `pattern.finditer(text)` for one that begins with `^`, tried at the starts of lines only."""
    at = 0
    while True:
        found = pattern.match(text, at)
        if found is not None:
            yield found
            at = found.end()
            if at > found.start() and text[at - 1] == "\n":
                continue
        at = text.find("\n", at) + 1
        if at == 0:
            return


def at_hints(pattern: re.Pattern[str], text: str, hints: tuple[str, ...]) -> Iterator[re.Match[str]]:
    """As `at_lines`, for a pattern of which every match has one of the hints on its first line."""
    starts: set[int] = set()
    for hint in hints:
        at = text.find(hint)
        while at >= 0:
            starts.add(text.rfind("\n", 0, at) + 1)
            line_end = text.find("\n", at)
            at = text.find(hint, line_end) if line_end >= 0 else -1
    end = 0
    for start in sorted(starts):
        if start >= end and (found := pattern.match(text, start)):
            yield found
            end = found.end()


def lines(
    name: str,
    hints: tuple[str, ...],
    pattern: str,
    kind: str = "",
    weight: int = STRONG,
    within: tuple[str, ...] | None = None,
) -> Shape:
    """A shape of single lines; its pattern begins with `^`.

    Groups: `msg`, and where there are such `type`, `file`, `frame`. `within`: one of these stands in the first line of
    every match (empty: nothing sure does); the hints where it is not given.
    """
    within = hints if within is None else within
    regex = re.compile(pattern.replace("^", _PREFIX, 1), re.MULTILINE)
    groups = regex.groupindex

    def find(text: str) -> Iterator[Shown]:
        for found in at_hints(regex, text, within) if within else at_lines(regex, text):
            message = found["msg"].strip()
            if not message:
                continue
            named = found["type"] if "type" in groups else None
            file = found["file"] if "file" in groups else None
            frame = found["frame"] if "frame" in groups else None
            types = (f"{kind}/{named}" if kind and named else named or kind or name,)
            frames, files = (frame.strip(),) if frame else (), (file,) if file else ()
            yield Shown(found.start(), found.end(), types, message, frames, files, weight)

    return Shape(name, hints, find, weight)


_TRACEBACK = re.compile(
    r"^[ \t]*Traceback \(most recent call last\):\n(?P<body>(?:[ \t]+.*\n|\n(?=[ \t]+\S)|[ \t]*\.\.\.\n)*)"
    r"[ \t]*(?P<type>[\w.]+)(?:: (?P<msg>.*(?:\n(?![ \t]*(?:Traceback|During|The above|\n)).+){0,4}))?$",
    re.MULTILINE,
)
_PY_FRAME = re.compile(r'File "(?P<file>[^"]+)", line \d+(?:, in (?P<name>\S+))?')


def _tracebacks(text: str) -> Iterator[Shown]:
    chain: list[re.Match[str]] = []
    found = list(at_lines(_TRACEBACK, text))
    for index, block in enumerate(found):
        chain.append(block)
        following = text[block.end() : found[index + 1].start()] if index + 1 < len(found) else ""
        if "During handling of" in following or "The above exception was" in following:
            continue
        last = chain[-1]
        types = tuple(dict.fromkeys(b["type"].rpartition(".")[2] for b in reversed(chain)))[:4]
        frames = [(f["file"], f["name"] or "") for f in _PY_FRAME.finditer(last["body"])][::-1]
        files = tuple(dict.fromkeys(path for path, _ in frames if not _LIBRARY.search(path)))[:5]
        message = (last["msg"] or "").strip() or types[0]
        yield Shown(chain[0].start(), last.end(), types, message, own_frames(frames), files)
        chain = []


_GO_TEST = re.compile(r"^(?P<indent>[ \t]*)--- FAIL: (?P<name>\S+)(?: \([\d.]+s\))?$", re.MULTILINE)
_GO_DETAIL = re.compile(r"^[ \t]+(?P<file>[\w./-]+\.go):\d+: ?(?P<msg>.*(?:\n[ \t]{6,}.*){0,6})$", re.MULTILINE)
_TELLING = re.compile(
    r"expect|want|got\b|fail|error|unexpected|should|mismatch|not |nil|panic|missing|wrong|timeout|timed out|differ",
    re.I,
)


def _go_tests(text: str) -> Iterator[Shown]:
    found = list(at_hints(_GO_TEST, text, ("--- FAIL: ",)))
    names = [block["name"] for block in found]
    for index, block in enumerate(found):
        name = block["name"]
        if any(other.startswith(name + "/") for other in names):
            continue
        end = found[index + 1].start() if index + 1 < len(found) else min(len(text), block.end() + 6_000)
        details = [
            d for d in _GO_DETAIL.finditer(text, block.end(), end) if _directly_below(text, block.end(), d.start())
        ]
        if not details:
            # With -v the words come before the verdict.
            start = max(text.rfind(f"=== RUN   {name}", 0, block.start()), found[index - 1].end() if index else 0, 0)
            start = max(start, block.start() - 4_000)
            details = list(_GO_DETAIL.finditer(text, start, block.start()))
        telling = [d for d in details if _TELLING.search(d["msg"])] or details
        # Logs come first: the last telling line is what made the test fail.
        told = telling[-1] if telling else None
        message = told["msg"].strip() if told else f"{name} failed"
        if len(message) < 25 and len(telling) > 1:
            message = f"{telling[-2]['msg'].strip()}\n{message}"
        stop = max(block.end(), told.end()) if told else block.end()
        yield Shown(block.start(), stop, ("test failure",), message, (name,), (told["file"],) if told else ())


def _directly_below(text: str, start: int, at: int) -> bool:
    """Whether nothing but indented lines lies between."""
    return all(not line or line[0] in " \t" for line in text[start:at].split("\n"))


_GO_PANIC = re.compile(r"^(?:panic|fatal error): (?P<msg>.+)$", re.MULTILINE)
_GO_FRAME = re.compile(r"^(?P<name>[\w./*()\-]+)\(.*\)\n\t(?P<file>\S+?):\d+", re.MULTILINE)


def _go_panics(text: str) -> Iterator[Shown]:
    for found in at_lines(_GO_PANIC, text):
        if "goroutine " not in text[found.end() : found.end() + 2_000]:
            continue
        frames = [
            (f["file"], f["name"].rpartition("/")[2])
            for f in _GO_FRAME.finditer(text, found.end(), found.end() + 6_000)
        ]
        message = re.sub(r" \[recovered\].*", "", found["msg"])
        files = tuple(path for path, _ in frames if not _LIBRARY.search(path))[:3]
        frames = [frame for frame in frames if not frame[1].startswith(("panic", "runtime.", "testing."))]
        yield Shown(found.start(), found.end(), ("panic",), message, own_frames(frames), files)


_STACKED = re.compile(
    r"^[ \t]*(?:Uncaught (?:\w+ )?|Unhandled (?:\w+ )?|Caused by: |Exception in thread \"[^\"]*\" |\[cause\]: )?"
    r"(?P<type>(?:[a-zA-Z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Rejection|Failure))(?: \[(?P<code>\w+)\])?(?:: "
    r"(?P<msg>.*))?\n"
    r"(?P<stack>(?:.*\n){0,3}?(?:[ \t]+at .+\n?)+)",
    re.MULTILINE,
)
_AT = re.compile(r"^[ \t]+at (?:async )?(?:(?P<name>[^\s(]+)[^(\n]*\()?(?P<file>[^()\n]*?)(?::\d+)*\)?$", re.MULTILINE)


def _stacks(text: str) -> Iterator[Shown]:
    for found in at_lines(_STACKED, text):
        frames = [(f["file"] or f["name"] or "", f["name"] or "") for f in _AT.finditer(found["stack"])]
        frames = [
            (
                f"{name.rpartition('.')[0].replace('.', '/')}/{path}"
                if path.endswith((".java", ".kt", ".scala"))
                else path,
                name,
            )
            for path, name in frames
        ]
        types = (found["type"].rpartition(".")[2], *((found["code"],) if found["code"] else ()))
        files = tuple(dict.fromkeys(path for path, _ in frames if path and not _LIBRARY.search(path)))[:3]
        yield Shown(found.start(), found.end(), types, (found["msg"] or types[0]).strip(), own_frames(frames), files)


_RUST = re.compile(r"^error(?:\[(?P<type>E\d+)\])?: (?P<msg>.+)\n[ \t]*--> (?P<file>[^\s:]+):\d+:\d+", re.MULTILINE)
_RUST_PANIC = re.compile(
    r"^thread '(?P<frame>[^']*)'(?: \(\d+\))? panicked at (?:'(?P<old>[^']*)', "
    r")?(?P<file>[^\s:]+):\d+:\d+:?\n?(?P<msg>.*)$",
    re.MULTILINE,
)


def _rust(text: str) -> Iterator[Shown]:
    for found in at_hints(_RUST, text, ("error",)):
        yield Shown(found.start(), found.end(), (found["type"] or "rustc",), found["msg"], (), (found["file"],))
    for found in at_lines(_RUST_PANIC, text) if "panicked at " in text else ():
        frames = () if found["frame"] == "main" else (found["frame"],)
        message = (found["old"] or found["msg"] or "panicked").strip()
        yield Shown(found.start(), found.end(), ("panic",), message, frames, (found["file"],))


_BIOME = re.compile(
    r"^[ \t]*(?:at )?(?P<file>[^\s:]+\.\w+)(?::\d+:\d+)? (?P<type>(?:lint|format|parse|assist|organizeImports|"
    r"check)(?:/\S+)?)"
    r"(?: +[A-Z]+)* +━+\n(?:[ \t]*\n)*[ \t]+[×!✖⚠] (?P<msg>.+)$",
    re.MULTILINE,
)


def _biome(text: str) -> Iterator[Shown]:
    for found in at_lines(_BIOME, text):
        yield Shown(found.start(), found.end(), (f"biome/{found['type']}",), found["msg"], (), (found["file"],))


_PYTEST = re.compile(
    r"^(?:FAILED|ERROR) (?P<file>[\w./\\-]+\.py)(?:::(?P<name>\S+))?(?: - (?P<msg>.*))?$", re.MULTILINE
)
_PYTEST_E = re.compile(
    r"^E   +(?P<msg>(?P<type>[\w.]*(?:Error|Exception|Failed|Warning|Exit))\b.*|assert .*)$", re.MULTILINE
)


def _pytest(text: str) -> Iterator[Shown]:
    details = list(at_hints(_PYTEST_E, text, ("E   ",)))
    summary = list(at_hints(_PYTEST, text, ("FAILED ", "ERROR ")))
    for index, found in enumerate(summary):
        detail = details[index] if len(details) == len(summary) else None
        message = (found["msg"] or "").strip()
        if detail is not None and (not message or message.endswith("...")):
            message = detail["msg"]
        named = re.match(r"([\w.]*(?:Error|Exception|Failed|Exit))\b:? ?", message)
        types = (named[1].rpartition(".")[2],) if named else ("AssertionError",) if message.startswith("assert") else ()
        frame = f"{_base(found['file'])}::{re.sub(chr(92) + '[.*', '', found['name'] or '')}".removesuffix("::")
        message = message[named.end() :] if named and named.end() < len(message) else message
        yield Shown(
            found.start(), found.end(), ("test failure", *types), message or "failed", (frame,), (found["file"],)
        )
    if not summary:
        for detail in details:
            types = ((detail["type"] or "AssertionError").rpartition(".")[2],)
            yield Shown(detail.start(), detail.end(), ("test failure", *types), detail["msg"])


_JS_TEST = re.compile(
    r"^(?:\(fail\) (?P<bun>.+?)(?: \[[\d.]+m?s\])?|[ \t]*● (?P<jest>(?!Console|Test suite failed).+ › .+)|"
    r" ?(?:FAIL|❯)  ?(?P<file>\S+\.\w+) > (?P<vitest>.+)|[ \t]*not ok \d+ - (?P<tap>.+)|"
    r"[ \t]+✖ (?P<node>.+?)(?: \([\d.]+m?s\)))$",
    re.MULTILINE,
)
_JS_WORDS = re.compile(
    r"^[ \t]*(?:error: )?(?P<msg>(?:AssertionError|TypeError|ReferenceError|SyntaxError|Error|expect\(|Expected|"
    r"ENOENT)\b.*"
    r"(?:\n\s*\n?[ \t]*(?:Expected|Received)[^\n]*){0,2})$",
    re.MULTILINE,
)


def _js_tests(text: str) -> Iterator[Shown]:
    for found in at_lines(_JS_TEST, text):
        name = next(n for n in (found["bun"], found["jest"], found["vitest"], found["tap"], found["node"]) if n)
        if found["bun"]:
            before = list(_JS_WORDS.finditer(text, max(0, found.start() - 2_500), found.start()))
            told = before[-1] if before and "(fail)" not in text[before[-1].end() : found.start()] else None
        else:
            told = _JS_WORDS.search(text, found.end(), min(len(text), found.end() + 1_200))
        message = told["msg"].strip() if told else "failed"
        named = re.match(r"(\w+Error)\b", message)
        start, end = (min(found.start(), told.start()), max(found.end(), told.end())) if told else found.span()
        types = ("test failure", *((named[1],) if named else ()))
        yield Shown(start, end, types, message, (name.strip(),), (found["file"],) if found["file"] else ())


_NPM_CODE = re.compile(r"^npm (?:ERR!|error) code (?P<type>\S+)$", re.MULTILINE)
_NPM_WORDS = re.compile(
    r"^npm (?:ERR!|error) (?!code |errno |syscall |path |A complete log|command |Lifecycle|signal |cwd |notsup "
    r")(?:\d+ )?(?P<msg>\S.+)$",
    re.MULTILINE,
)


def _npm(text: str) -> Iterator[Shown]:
    code = _NPM_CODE.search(text)
    words = _NPM_WORDS.search(text)
    if words:
        types = (f"npm/{code['type']}",) if code else ("npm",)
        yield Shown((code or words).start(), words.end(), types, words["msg"])


SHAPES: tuple[Shape, ...] = (
    Shape("python", ("Traceback (most recent",), _tracebacks),
    Shape("go test", ("--- FAIL: ",), _go_tests),
    Shape("go panic", ("goroutine ",), _go_panics),
    Shape("pytest", ("FAILED ", "ERROR ", "\nE   "), _pytest),
    Shape("js test", ("(fail) ", " › ", "FAIL ", "❯ ", "not ok ", "✖ "), _js_tests),
    Shape("rust", ("error", "panicked"), _rust),
    Shape("biome", ("━━",), _biome),
    Shape("stack", ("    at ", "\tat "), _stacks),
    Shape("npm", ("npm ERR!", "npm error"), _npm),
    lines("rust test", (" ... FAILED",), r"^test (?P<frame>\S+) \.\.\. (?P<msg>FAILED)$", "test failure"),
    lines("python syntax", ("SyntaxError", "IndentationError", "TabError"),
          r"^(?P<type>SyntaxError|IndentationError|TabError): (?P<msg>.+)$"),
    lines("tsc", ("error TS",), r"^(?P<file>[^\s(:][^(:\n]*?)(?:\(\d+,\d+\)|:\d+:\d+)(?: -|:) error "
                                r"(?P<type>TS\d+): (?P<msg>.+)$"),
    lines("tsc", ("error TS",), r"^error (?P<type>TS\d+): (?P<msg>.+)$"),
    lines("golangci-lint", (".go:",),
          r"^(?P<file>(?:[A-Za-z]:)?[\w./\\@+-]+\.go):\d+(?::\d+)?: "
          r"(?P<msg>[^\n]+) \((?P<type>[a-z]\w+)\)$", "golangci-lint"),
    lines("go compile", (".go:",),
          r"^(?:vet: )?(?P<file>(?:[A-Za-z]:)?[\w./\\@+-]+\.go):\d+:\d+: (?P<msg>(?!too many "
          r"errors)[^\n]+)$", "go compile"),
    lines("mypy", (".py:",), r"^(?P<file>[\w./\\-]+\.pyi?):\d+(?::\d+)?: error: (?P<msg>.+?)(?: "
                             r" \[(?P<type>[\w-]+)\])?$", "mypy", within=(".py",)),
    lines("ruff", (".py:",), r"^(?P<file>[\w./\\-]+\.pyi?):\d+:\d+: (?P<type>[A-Z]{1,4}\d{2,4}) (?P<msg>.+)$", "ruff",
          within=(".py",)),
    lines("ruff", ("--> ",), r"^(?P<type>[A-Z]{1,4}\d{2,4}) (?:\[\*\] )?(?P<msg>.+)\n +--> "
                             r"(?P<file>[^\s:]+):\d+:\d+$", "ruff", within=()),
    lines("compiler", ("error: ",),
          r"^(?P<file>(?:[A-Za-z]:)?[\w./\\+-]+\.\w{1,5}):\d+(?::\d+)?: (?:fatal )?error: (?P<msg>.+)$", "compile"),
    lines("eslint", (" error ",),
          r"^[ \t]+\d+:\d+[ \t]+error[ \t]+(?P<msg>\S.*?)[ \t]{2,}(?P<type>[@\w./-]+)[ \t]*$", "lint",
          within=("error",)),
    lines("markdownlint", (" MD",), r"^(?P<file>\S+\.mdx?):\d+(?::\d+)? (?:error )?(?P<type>MD\d+)\S* "
                                    r"(?P<msg>.+)$", "markdownlint"),
    lines("diagnostic", (":",), r"^(?P<file>[\w./-]+\.[a-z]{1,5}):\d+:\d+: (?P<msg>\S.+?)(?: \[(?P<type>[\w./-]+)\])?$",
          "diagnostic", PLAIN),
    lines("maven", ("[ERROR] ",), r"^\[ERROR\] (?P<file>\S+\.\w+):\[\d+,\d+\] (?P<msg>.+)$", "compile"),
    lines("msbuild", (": error ",), r"^[ \t]*(?P<file>[^\s(]+)\(\d+,\d+\): error (?P<type>[A-Z]+\d+): "
                                    r"(?P<msg>.+?)(?: \[[^\]]+\])?$"),
    lines("pnpm", ("ERR_PNPM_",), r"^[ \t]*(?P<type>ERR_PNPM_\w+)\s+(?P<msg>.+)$"),
    lines("pip", ("ERROR: ",), r"^ERROR: (?P<msg>(?:Could not|No matching|Cannot|Failed|Package|Ignored|Invalid|"
                               r"Exception).+)$", "pip"),
    lines("docker", ("Error response from daemon", "failed to solve"),
          r"^(?:docker: )?(?:Error response from daemon|ERROR: failed to solve): (?P<msg>.+?)\.?$", "docker"),
    lines("merge conflict", ("CONFLICT (",), r"^CONFLICT \((?P<type>[^)]+)\): (?P<msg>.+)$", "conflict"),
    lines("push rejected", (" ! [",), r"^ ! \[(?P<type>remote rejected|"
                                      r"rejected)\]\s+.*?(?P<msg>\([^)]+\))$", "git push"),
    lines("hook", ("hook id:",), r"^- hook id: (?P<msg>.+)$", "pre-commit hook", WRAPPER),
    lines("shell", ("command not found", ": not found"),
          r"^(?:\S*sh|\(eval\)|\S+\.sh)(?:: line \d+|:\d+)?: (?P<msg>command not found: \S+|[^\s:]+: (?:command "
          r")?not found)$",
          "command not found"),
    lines("shell syntax",
          ("parse error", "syntax error", "unexpected EOF", "no matches found", "unbound variable", "bad subst"),
          r"^(?:\S*sh|\(eval\)|\S+\.sh)(?:: -c)?(?:: line \d+|:\d+)?: (?P<msg>.*(?:parse error|syntax error|"
          r"unexpected EOF|"
          r"no matches found|unbound variable|bad substitution).*)$",
          "shell"),
    lines("http", ("HTTP ",), r"^(?:gh: |\w+: )?(?P<msg>.*\((?P<type>HTTP [45]\d\d)\).*)$", "", PLAIN),
    lines("http", ("HTTP ",), r"^(?:gh: |error: )?(?P<type>HTTP [45]\d\d): (?P<msg>.+?)(?: \(https?:.*)?$", "", PLAIN),
    lines("graphql", ("GraphQL: ",), r"^GraphQL: (?P<msg>.+)$", "GraphQL", PLAIN),
    lines("curl", ("curl: (",), r"^curl: \((?P<type>\d+)\) (?P<msg>.+)$", "curl"),
    lines("postgres", ("ERROR:  ", "FATAL:  "), r"^(?:psql:\S* )?(?:ERROR|FATAL):  (?P<msg>.+)$", "sql", PLAIN),
    lines("sql", ("SQLSTATE", "near \""), r"^(?P<msg>.*(?:SQLSTATE\[?\w+|near \"[^\"]*\": syntax "
                                          r"error).*)$", "sql", PLAIN),
    lines("go", ("go: ",), r"^go: (?P<msg>(?!downloading|finding|added|upgraded|extracting|found).+)$", "go", PLAIN),
    lines("usage",
          ("nknown", "nrecognized", "llegal option", "nvalid option", "unexpected argument", "No such option",
           "if any flags in"),
          r"^(?P<msg>.*(?:[Uu]nknown (?:shorthand )?(?:option|flag|command|subcommand|argument|JSON field)|"
          r"[Uu]nrecognized (?:option|argument|"
          r"subcommand|command)|[Ii]llegal option|[Ii]nvalid option|unexpected argument|No such option|if any "
          r"flags in the group).*)$",
          "usage", PLAIN),
    lines("git", ("fatal: ",), r"^fatal: (?P<msg>.+)$", "git", PLAIN),
    lines("file",
          ("o such file", "ermission denied", "s a directory", "ot a directory", "ile exists", "not permitted",
           "o space left"),
          r"^(?P<msg>(?:[\w./()\[\]-]+:(?:\d+:)? ).*(?:[Nn]o such file or directory|[Pp]ermission denied|[Ii]s a "
          r"directory|[Nn]ot a directory|"
          r"File exists|Operation not permitted|[Nn]o space left on device).*)$", "file", PLAIN),
    lines("process", ("Segmentation fault", "core dumped", "timed out after", "Killed", "out of memory"),
          r"^(?P<msg>.*(?:Segmentation fault|core dumped|[Cc]ommand timed out after|Killed(?:: 9)?$|out of "
          r"memory).*)$", "process", PLAIN),
    lines("named", ("Error: ", "Exception: "),
          r"^[ \t]*(?:Uncaught |Unhandled )?(?P<type>(?:\w+\.)*[A-Z]\w*(?:Error|Exception)): (?P<msg>.+)$", "", PLAIN),
    lines("error line", ("rror: ", "ERROR: ", "rror ", "ERROR "),
          r"^[ \t]*(?:\[[\w: .-]+\] )?(?:[✗✘❌×✖] ?)?(?:error|Error|ERROR|fatal error)(?:\[[\w-]+\])?:? "
          r"+(?P<msg>(?!task failed|\d+ \(|Command failed with|script \").+)$",
          "error", PLAIN, within=("rror", "ERROR")),
    lines("crossed", ("✗", "✘", "❌", "×", "✖", "❯"), r"^[ \t]*(?:✗|✘|❌|×|✖)[ \t]*(?P<msg>\S.+)$", "error", PLAIN),
    lines("go test package", ("FAIL\t",), r"^FAIL\t(?P<msg>\S+)(?: \[(?P<type>[\w ]+)\]|"
                                          r"\t[\d.]+s)?.*$", "test failure", WRAPPER),
    lines("make", ("*** ",), r"^g?make(?:\[\d+\])?: \*\*\* (?P<msg>.+)$", "make", WRAPPER),
    lines("script",
          ("exited with code", "ELIFECYCLE", "Command failed with", "ERROR task failed", "BUILD FAILED", "exit status"),
          r"^(?P<msg>.*(?:exited with code \d+|ELIFECYCLE.*|Command failed with exit code \d+|ERROR task failed|"
          r"BUILD FAILED.*|^exit status \d+))$",
          "failed", WRAPPER),
)  # fmt: skip

ERROR_WORDS = re.compile(
    r"\b(?:errors?|failed|failure|fatal|cannot|can't|could not|couldn't|unable|refus\w+|invalid|not found|denied|"
    r"unknown|"
    r"unexpected|missing|undefined|abort\w*|conflict\w*|panic|exception|not allowed|rejected|does not exist|ignored|"
    r"illegal|unsupported|no such|already exists|did not match)\b|✗|❌|✖",
    re.I,
)
