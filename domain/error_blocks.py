"""Errors that take several lines to tell: tracebacks, stacks, panics, reports of test runners."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memctl.domain.error_shapes import LIBRARY, Shown, at_hints, at_lines, base_of, own_frames

_TRACEBACK = re.compile(
    r"^[ \t]*Traceback \(most recent call last\):\n(?P<body>(?:[ \t]+.*\n|\n(?=[ \t]+\S)|[ \t]*\.\.\.\n)*)"
    r"[ \t]*(?P<type>[\w.]+)(?:: (?P<msg>.*(?:\n(?![ \t]*(?:Traceback|During|The above|\n)).+){0,4}))?$",
    re.MULTILINE,
)
_PY_FRAME = re.compile(r'File "(?P<file>[^"]+)", line \d+(?:, in (?P<name>\S+))?(?:\n[ \t]+(?!File )(?P<code>\S.*))?')


def tracebacks(text: str) -> Iterator[Shown]:
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
        files = tuple(dict.fromkeys(path for path, _ in frames if not LIBRARY.search(path)))[:5]
        message = (last["msg"] or "").strip() or types[0]
        code = [f["code"] or "" for f in _PY_FRAME.finditer(last["body"]) if not LIBRARY.search(f["file"])]
        frame, code_line = own_frames(frames), code[-1].strip()[:200] if code else ""
        yield Shown(chain[0].start(), last.end(), types, message, frame, files, code=code_line)
        chain = []


_UNITTEST = re.compile(
    r"^(?P<kind>FAIL|ERROR): (?P<name>\w+)(?: \([\w.]+\))?(?: \(.*\))?\n(?:.*\n)?-{20,}\n"
    r"(?=Traceback \(most recent call last\):\n)",
    re.MULTILINE,
)


def unittests(text: str) -> Iterator[Shown]:
    """Failed tests as `unittest` reports them: a headline, and the traceback below it."""
    for headline in at_hints(_UNITTEST, text, ("FAIL: ", "ERROR: ")):
        block = _TRACEBACK.match(text, headline.end())
        if block is None:
            continue
        frames = [f["file"] for f in _PY_FRAME.finditer(block["body"]) if not LIBRARY.search(f["file"])]
        message = (block["msg"] or "").strip() or block["type"]
        types = ("test failure", block["type"].rpartition(".")[2])
        files = tuple(dict.fromkeys(reversed(frames)))[:5]
        yield Shown(headline.start(), block.end(), types, message, (headline["name"],), files)


_GO_TEST = re.compile(r"^(?P<indent>[ \t]*)--- FAIL: (?P<name>\S+)(?: \([\d.]+s\))?$", re.MULTILINE)
_GO_DETAIL = re.compile(r"^[ \t]+(?P<file>[\w./-]+\.go):\d+: ?(?P<msg>.*(?:\n[ \t]{6,}.*){0,6})$", re.MULTILINE)
_TELLING = re.compile(
    r"expect|want|got\b|fail|error|unexpected|should|mismatch|not |nil|panic|missing|wrong|timeout|timed out|differ",
    re.I,
)
_LOGGED = re.compile(
    r"[^\n]*(?:\d\d:\d\d:\d\d\S* +\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN)|\blevel=(?:trace|debug|info|warn))"
)
"""A line of a log, which a test prints as it prints its verdict."""
_CUT = re.compile(r"\[[^\[\]\n]{0,100}\b(?:truncated|omitted)\b[^\[\]\n]{0,100}\]")
"""Where a client left out the middle of a long output."""


def go_tests(text: str) -> Iterator[Shown]:
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
        details = [d for d in details if not _LOGGED.match(d["msg"])]
        telling = [d for d in details if _TELLING.search(d["msg"])]
        if not telling and not _CUT.search(text, block.end(), end):
            telling = details
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


def go_panics(text: str) -> Iterator[Shown]:
    for found in at_lines(_GO_PANIC, text):
        if "goroutine " not in text[found.end() : found.end() + 2_000]:
            continue
        frames = [
            (f["file"], f["name"].rpartition("/")[2])
            for f in _GO_FRAME.finditer(text, found.end(), found.end() + 6_000)
        ]
        message = re.sub(r" \[recovered\].*", "", found["msg"])
        files = tuple(path for path, _ in frames if not LIBRARY.search(path))[:3]
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


def stacks(text: str) -> Iterator[Shown]:
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
        files = tuple(dict.fromkeys(path for path, _ in frames if path and not LIBRARY.search(path)))[:3]
        yield Shown(found.start(), found.end(), types, (found["msg"] or types[0]).strip(), own_frames(frames), files)


_RUST = re.compile(r"^error(?:\[(?P<type>E\d+)\])?: (?P<msg>.+)\n[ \t]*--> (?P<file>[^\s:]+):\d+:\d+", re.MULTILINE)
_RUST_PANIC = re.compile(
    r"^thread '(?P<frame>[^']*)'(?: \(\d+\))? panicked at (?:'(?P<old>[^']*)', "
    r")?(?P<file>[^\s:]+):\d+:\d+:?\n?(?P<msg>.*)$",
    re.MULTILINE,
)


def rust(text: str) -> Iterator[Shown]:
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


def biome(text: str) -> Iterator[Shown]:
    for found in at_lines(_BIOME, text):
        yield Shown(found.start(), found.end(), (f"biome/{found['type']}",), found["msg"], (), (found["file"],))


_PYTEST = re.compile(
    r"^(?:FAILED|ERROR) (?P<file>[\w./\\-]+\.py)(?:::(?P<name>\S+))?(?: - (?P<msg>.*))?$", re.MULTILINE
)
_PYTEST_E = re.compile(
    r"^E   +(?P<msg>(?P<type>[\w.]*(?:Error|Exception|Failed|Warning|Exit))\b.*|assert .*)$", re.MULTILINE
)


def pytest(text: str) -> Iterator[Shown]:
    details = list(at_hints(_PYTEST_E, text, ("E   ",)))
    summary = list(at_hints(_PYTEST, text, ("FAILED ", "ERROR ")))
    for index, found in enumerate(summary):
        detail = details[index] if len(details) == len(summary) else None
        message = (found["msg"] or "").strip()
        if detail is not None and (not message or message.endswith("...")):
            message = detail["msg"]
        named = re.match(r"([\w.]*(?:Error|Exception|Failed|Exit))\b:? ?", message)
        types = (named[1].rpartition(".")[2],) if named else ("AssertionError",) if message.startswith("assert") else ()
        frame = f"{base_of(found['file'])}::{re.sub(chr(92) + '[.*', '', found['name'] or '')}".removesuffix("::")
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


def js_tests(text: str) -> Iterator[Shown]:
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


def npm(text: str) -> Iterator[Shown]:
    code = _NPM_CODE.search(text)
    words = _NPM_WORDS.search(text)
    if words:
        types = (f"npm/{code['type']}",) if code else ("npm",)
        yield Shown((code or words).start(), words.end(), types, words["msg"])
