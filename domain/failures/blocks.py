"""Errors that take several lines: tracebacks, stacks, panics, reports of test runners."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from memctl.domain.failures.shapes import LIBRARY, FoundError, at_hints, base_of, own_frames
from memctl.domain.support import patterns

_HEADLINE = patterns.compile(r"^[ \t]*Traceback \(most recent call last\):\n", patterns.M)
_LAST_LINE = patterns.compile(r"[ \t]*(?P<type>[\w.]+)(?:: (?P<msg>.*))?$", patterns.M)
_NEXT_LINE = patterns.compile(r"\n(?P<line>[^\n]+)")
_NO_MESSAGE = ("Traceback", "During", "The above")
_PY_FRAME = patterns.compile(
    r'File "(?P<file>[^"]+)", line \d+(?:, in (?P<name>\S+))?'
    r"(?:\n[ \t]+(?P<code>(?:[^\sF]|F(?:[^i\n]|i(?:[^l\n]|l(?:[^e\n]|e[^ \n]))))[^\n]*))?"
)


class _Traceback(NamedTuple):
    """A traceback of Python's: characters `start` to `end`, its frames as text, and the error on its last line."""

    start: int
    end: int
    body: str
    type: str
    message: str


def _tracebacks(text: str) -> Iterator[_Traceback]:
    """The tracebacks of a text. Each takes the longest run of indented lines with an error's name behind it."""
    nothing_before = 0
    for headline in _HEADLINE.finditer(text):
        if headline.start() < nothing_before:
            continue
        found, run_end = _traceback(text, headline.start(), headline.end())
        # Headlines within a run of indented lines share what comes behind them: where one has no end, none has.
        nothing_before = run_end if found is None else found.end
        if found:
            yield found


def _traceback(text: str, start: int, at: int) -> tuple[_Traceback | None, int]:
    """The traceback whose frames begin at `at`, None where no error's name follows; and where its lines end."""
    body, last, within = at, None, True
    while within and at < len(text):
        within = _is_within(text, at)
        if found := _LAST_LINE.match(text, at):
            last = found
        at = text.find("\n", at) + 1 or len(text)
    if last is None:
        return None, at
    message, end = _message(text, last) if last["msg"] is not None else ("", last.end())
    return _Traceback(start, end, text[body : last.start()], last["type"], message), at


def _is_within(text: str, at: int) -> bool:
    """Whether the line that begins there may be one of a traceback's frames."""
    if text[at] == "\n":
        following = text[at + 1 : at + 200].partition("\n")[0]
        return following[:1] in (" ", "\t") and not following.isspace()
    return text[at] in " \t" or text.startswith("...\n", at)


def _message(text: str, last: patterns.Match[str]) -> tuple[str, int]:
    """An error's message, with up to four lines behind its first, and where it ends."""
    end = last.end()
    for _ in range(4):
        following = _NEXT_LINE.match(text, end)
        bare = following["line"].lstrip(" \t") if following else ""
        if following is None or not bare or bare.startswith(_NO_MESSAGE):
            break
        end = following.end()
    return text[last.start("msg") : end], end


def tracebacks(text: str) -> Iterator[FoundError]:
    chain: list[_Traceback] = []
    found = list(_tracebacks(text))
    for index, block in enumerate(found):
        chain.append(block)
        following = text[block.end : found[index + 1].start] if index + 1 < len(found) else ""
        if "During handling of" in following or "The above exception was" in following:
            continue
        last = chain[-1]
        types = tuple(dict.fromkeys(b.type.rpartition(".")[2] for b in reversed(chain)))[:4]
        shown = list(_PY_FRAME.finditer(last.body))
        frames = [(f["file"], f["name"] or "") for f in shown][::-1]
        files = tuple(dict.fromkeys(path for path, _ in frames if not LIBRARY.search(path)))[:5]
        code = [f["code"] or "" for f in shown if not LIBRARY.search(f["file"])]
        frame, code_line = own_frames(frames), code[-1].strip()[:200] if code else ""
        yield FoundError(
            chain[0].start, last.end, types, last.message.strip() or types[0], frame, files, code=code_line
        )
        chain = []


_UNITTEST = patterns.compile(
    r"^(?P<kind>FAIL|ERROR): (?P<name>\w+)(?: \([\w.]+\))?(?: \(.*\))?\n(?:.*\n)?-{20,}\n"
    r"(?=Traceback \(most recent call last\):\n)",
    patterns.M,
)


def unittests(text: str) -> Iterator[FoundError]:
    """Failed tests as `unittest` reports them: a headline, and the traceback below it."""
    for headline in at_hints(_UNITTEST, text, ("FAIL: ", "ERROR: ")):
        opening = _HEADLINE.match(text, headline.end())
        block, _ = _traceback(text, opening.start(), opening.end()) if opening else (None, 0)
        if block is None:
            continue
        frames = [f["file"] for f in _PY_FRAME.finditer(block.body) if not LIBRARY.search(f["file"])]
        message = block.message.strip() or block.type
        types = ("test failure", block.type.rpartition(".")[2])
        files = tuple(dict.fromkeys(reversed(frames)))[:5]
        yield FoundError(headline.start(), block.end, types, message, (headline["name"],), files)


_GO_TEST = patterns.compile(r"^(?P<indent>[ \t]*)--- FAIL: (?P<name>\S+)(?: \([\d.]+s\))?$", patterns.M)
_GO_DETAIL = patterns.compile(r"^[ \t]+(?P<file>[\w./-]+\.go):\d+: ?(?P<msg>.*(?:\n[ \t]{6,}.*){0,6})$", patterns.M)
_FAILURE_WORDS = patterns.compile(
    r"expect|want|got\b|fail|error|unexpected|should|mismatch|not |nil|panic|missing|wrong|timeout|timed out|differ",
    patterns.I,
)
_LOGGED = patterns.compile(
    r"[^\n]*(?:\d\d:\d\d:\d\d\S* +\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN)|\blevel=(?:trace|debug|info|warn))"
)
"""A line of a log, which a test prints as it prints its verdict."""
_CUT = patterns.compile(r"\[[^\[\]\n]{0,100}\b(?:truncated|omitted)\b[^\[\]\n]{0,100}\]")
"""Where a client left out the middle of a long output."""


def go_tests(text: str) -> Iterator[FoundError]:
    found = list(at_hints(_GO_TEST, text, ("--- FAIL: ",)))
    parents = {name[:at] for name in {block["name"] for block in found} for at, sign in enumerate(name) if sign == "/"}
    for index, block in enumerate(found):
        name = block["name"]
        if name in parents:
            continue
        end = found[index + 1].start() if index + 1 < len(found) else min(len(text), block.end() + 6_000)
        begins = max(found[index - 1].end() if index else 0, block.start() - 4_000)
        details = [d for d in _go_details(text, block, begins, end) if not _LOGGED.match(d["msg"])]
        failing = [d for d in details if _FAILURE_WORDS.search(d["msg"])]
        if not failing and not _CUT.search(text, block.end(), end):
            failing = details
        if not failing:
            yield FoundError(block.start(), block.end(), ("test failure",), f"{name} failed", (name,), ())
            continue
        # Logs come first: the last line that names a failure is what made the test fail.
        detail = failing[-1]
        message = detail["msg"].strip()
        if len(message) < 25 and len(failing) > 1:
            message = f"{failing[-2]['msg'].strip()}\n{message}"
        stop = max(block.end(), detail.end())
        yield FoundError(block.start(), stop, ("test failure",), message, (name,), (detail["file"],))


def _go_details(text: str, verdict: patterns.Match[str], begins: int, end: int) -> list[patterns.Match[str]]:
    """A failed test's own lines: those directly below its verdict, up to `end`; with -v they come before it, from
    `begins` on."""
    below = verdict.end()
    details = [d for d in _GO_DETAIL.finditer(text, below, end) if _directly_below(text, below, d.start())]
    if details:
        return details
    begins = max(text.rfind(f"=== RUN   {verdict['name']}", 0, verdict.start()), begins)
    return list(_GO_DETAIL.finditer(text, begins, verdict.start()))


def _directly_below(text: str, start: int, at: int) -> bool:
    """Whether nothing but indented lines lies between."""
    return all(not line or line[0] in " \t" for line in text[start:at].split("\n"))


_GO_PANIC = patterns.compile(r"^(?:panic|fatal error): (?P<msg>.+)$", patterns.M)
_GO_FRAME = patterns.compile(r"^(?P<name>[\w./*()\-]+)\(.*\)\n\t(?P<file>\S+?):\d+", patterns.M)


def go_panics(text: str) -> Iterator[FoundError]:
    for found in _GO_PANIC.finditer(text):
        if "goroutine " not in text[found.end() : found.end() + 2_000]:
            continue
        frames = [
            (f["file"], f["name"].rpartition("/")[2])
            for f in _GO_FRAME.finditer(text, found.end(), found.end() + 6_000)
        ]
        message = found["msg"].partition(" [recovered]")[0]
        files = tuple(path for path, _ in frames if not LIBRARY.search(path))[:3]
        frames = [frame for frame in frames if not frame[1].startswith(("panic", "runtime.", "testing."))]
        yield FoundError(found.start(), found.end(), ("panic",), message, own_frames(frames), files)


_STACKED = patterns.compile(
    r"^[ \t]*(?:Uncaught (?:\w+ )?|Unhandled (?:\w+ )?|Caused by: |Exception in thread \"[^\"]*\" |\[cause\]: )?"
    r"(?P<type>(?:[a-zA-Z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Rejection|Failure))(?: \[(?P<code>\w+)\])?(?:: "
    r"(?P<msg>.*))?\n"
    r"(?P<stack>(?:.*\n){0,3}?(?:[ \t]+at .+\n?)+)",
    patterns.M,
)
_AT = patterns.compile(
    r"^[ \t]+at (?:async )?(?:(?P<name>[^\s(]+)[^(\n]*\()?(?P<file>[^()\n]*?)(?::\d+)*\)?$", patterns.M
)


def stacks(text: str) -> Iterator[FoundError]:
    for found in _STACKED.finditer(text):
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
        files = tuple(dict.fromkeys(path for path, _ in frames if path and not LIBRARY.search(path)))[:3]
        yield FoundError(
            found.start(), found.end(), types, (found["msg"] or types[0]).strip(), own_frames(frames), files
        )


_RUST = patterns.compile(r"^error(?:\[(?P<type>E\d+)\])?: (?P<msg>.+)\n[ \t]*--> (?P<file>[^\s:]+):\d+:\d+", patterns.M)
_RUST_PANIC = patterns.compile(
    r"^thread '(?P<frame>[^']*)'(?: \(\d+\))? panicked at (?:'(?P<old>[^']*)', "
    r")?(?P<file>[^\s:]+):\d+:\d+:?\n?(?P<msg>.*)$",
    patterns.M,
)


def rust(text: str) -> Iterator[FoundError]:
    for found in at_hints(_RUST, text, ("error",)):
        yield FoundError(found.start(), found.end(), (found["type"] or "rustc",), found["msg"], (), (found["file"],))
    for found in _RUST_PANIC.finditer(text) if "panicked at " in text else ():
        frames = () if found["frame"] == "main" else (found["frame"],)
        message = (found["old"] or found["msg"] or "panicked").strip()
        yield FoundError(found.start(), found.end(), ("panic",), message, frames, (found["file"],))


_BIOME = patterns.compile(
    r"^[ \t]*(?:at )?(?P<file>[^\s:]+\.\w+)(?::\d+:\d+)? (?P<type>(?:lint|format|parse|assist|organizeImports|"
    r"check)(?:/\S+)?)"
    r"(?: +[A-Z]+)* +━+\n(?:[ \t]*\n)*[ \t]+[×!✖⚠] (?P<msg>.+)$",
    patterns.M,
)


def biome(text: str) -> Iterator[FoundError]:
    for found in _BIOME.finditer(text):
        yield FoundError(found.start(), found.end(), (f"biome/{found['type']}",), found["msg"], (), (found["file"],))


_PYTEST = patterns.compile(
    r"^(?:FAILED|ERROR) (?P<file>[\w./\\-]+\.py)(?:::(?P<name>\S+))?(?: - (?P<msg>.*))?$", patterns.M
)
_PYTEST_E = patterns.compile(
    r"^E   +(?P<msg>(?P<type>[\w.]*(?:Error|Exception|Failed|Warning|Exit))\b.*|assert .*)$", patterns.M
)


_NAMED = patterns.compile(r"([\w.]*(?:Error|Exception|Failed|Exit))\b:? ?")
_NAMED_ERROR = patterns.compile(r"(\w+Error)\b")


def pytest(text: str) -> Iterator[FoundError]:
    details = list(at_hints(_PYTEST_E, text, ("E   ",)))
    summary = list(at_hints(_PYTEST, text, ("FAILED ", "ERROR ")))
    for index, found in enumerate(summary):
        detail = details[index] if len(details) == len(summary) else None
        message = (found["msg"] or "").strip()
        if detail is not None and (not message or message.endswith("...")):
            message = detail["msg"]
        named = _NAMED.match(message)
        types = (named[1].rpartition(".")[2],) if named else ("AssertionError",) if message.startswith("assert") else ()
        frame = f"{base_of(found['file'])}::{(found['name'] or '').partition('[')[0]}".removesuffix("::")
        message = message[named.end() :] if named and named.end() < len(message) else message
        yield FoundError(
            found.start(), found.end(), ("test failure", *types), message or "failed", (frame,), (found["file"],)
        )
    if not summary:
        for detail in details:
            types = ((detail["type"] or "AssertionError").rpartition(".")[2],)
            yield FoundError(detail.start(), detail.end(), ("test failure", *types), detail["msg"])


_JS_TEST = patterns.compile(
    r"^(?:\(fail\) (?P<bun>.+?)(?: \[[\d.]+m?s\])?|[ \t]*● (?P<jest>(?!Console|Test suite failed).+ › .+)|"
    r" ?(?:FAIL|❯)  ?(?P<file>\S+\.\w+) > (?P<vitest>.+)|[ \t]*not ok \d+ - (?P<tap>.+)|"
    r"[ \t]+✖ (?P<node>.+?)(?: \([\d.]+m?s\)))$",
    patterns.M,
)
_JS_WORDS = patterns.compile(
    r"^[ \t]*(?:error: )?(?P<msg>(?:AssertionError|TypeError|ReferenceError|SyntaxError|Error|expect\(|Expected|"
    r"ENOENT)\b.*"
    r"(?:\n\s*\n?[ \t]*(?:Expected|Received)[^\n]*){0,2})$",
    patterns.M,
)


def js_tests(text: str) -> Iterator[FoundError]:
    last = 0
    for found in _JS_TEST.finditer(text):
        name = next(n for n in (found["bun"], found["jest"], found["vitest"], found["tap"], found["node"]) if n)
        if found["bun"]:
            # Words before another verdict are about that one.
            before = list(_JS_WORDS.finditer(text, max(last, found.start() - 2_500), found.start()))
            verdict = before[-1] if before and "(fail)" not in text[before[-1].end() : found.start()] else None
            last = found.start()
        else:
            verdict = _JS_WORDS.search(text, found.end(), min(len(text), found.end() + 1_200))
        message = verdict["msg"].strip() if verdict else "failed"
        named = _NAMED_ERROR.match(message)
        start, end = (min(found.start(), verdict.start()), max(found.end(), verdict.end())) if verdict else found.span()
        types = ("test failure", *((named[1],) if named else ()))
        yield FoundError(start, end, types, message, (name.strip(),), (found["file"],) if found["file"] else ())


_NPM_CODE = patterns.compile(r"^npm (?:ERR!|error) code (?P<type>\S+)$", patterns.M)
_NPM_WORDS = patterns.compile(
    r"^npm (?:ERR!|error) (?!code |errno |syscall |path |A complete log|command |Lifecycle|signal |cwd |notsup "
    r")(?:\d+ )?(?P<msg>\S.+)$",
    patterns.M,
)


def npm(text: str) -> Iterator[FoundError]:
    code = _NPM_CODE.search(text)
    words = _NPM_WORDS.search(text)
    if words:
        types = (f"npm/{code['type']}",) if code else ("npm",)
        yield FoundError((code or words).start(), words.end(), types, words["msg"])
