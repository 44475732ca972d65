"""What stays of an error's message when the run and the machine are taken out of it.

With the names that it is about, the very failure is known again; without them, its kind.
"""

from __future__ import annotations

from memctl.domain.support import patterns
from memctl.domain.support.remembered import remembered
from memctl.domain.support.text import composed

ANSI = patterns.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")

_EXTENSIONS = (
    "py|pyi|js|jsx|ts|tsx|mjs|cjs|mts|cts|go|rs|java|kt|kts|scala|c|h|cc|cpp|hpp|cxx|cs|fs|rb|php|swift|m|mm|sh|"
    "bash|zsh|"
    "ps1|sql|md|mdx|rst|txt|json|jsonl|json5|yaml|yml|toml|ini|cfg|conf|lock|mod|sum|xml|html|css|scss|vue|svelte|"
    "gradle|properties|proto|graphql|tf|dart|ex|exs|erl|hs|ml|lua|r|jl|log|csv|env|pdf|png|svg|zip|gz|tar|so|dll|"
    "exe|db|sqlite"
)

_VARYING = patterns.compile(
    rf"""(?P<url>\b[a-z][a-z0-9+.-]{{1,12}}://[^\s'"`<>)\]]+)
    | (?P<email>\b[\w.+-]+@[\w-]+\.[A-Za-z][\w.-]+\b)
    | (?P<id>\b[0-9a-fA-F]{{8}}-(?:[0-9a-fA-F]{{4}}-){{3}}[0-9a-fA-F]{{12}}\b)
    | (?P<q>(?<!\w)'[^'\n]*'(?!\w) | "[^"\n]*" | `[^`\n]*` | [‘“][^’”\n]*[’”])
    | (?P<path>(?:(?<![\w/])[A-Za-z]:[\\/]
                | (?<![\w<])(?:~|\.{{1,2}})?/
                | (?<![\w./])[\w.@+-]+[\\/](?=[\w.@+-]+[\\/]|[\w@+-]+\.(?:{_EXTENSIONS})\b))
        [^\s'"`:;,()<>\[\]{{}}|]*(?::\d+(?::\d+)?)?
        | (?<![\w.])[\w@+-][\w.@+-]*\.(?:{_EXTENSIONS})\b(?::\d+(?::\d+)?)?)
    | (?P<time>\b\d{{4}}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?\b
        | \b\d\d:\d\d:\d\d(?:[.,]\d+)?\b)
    | (?P<addr>\b0x[0-9a-fA-F]+\b)
    | (?P<hash>\b(?=[0-9a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{{7,64}}\b)
    | (?P<host>\b\d{{1,3}}(?:\.\d{{1,3}}){{3}}(?::\d+)?\b)
    | (?P<v>(?<![\w.])v?\d+\.\d+\.\d+(?:[-+.][\w.]+)?\b)
    | (?P<n>(?<![\w.])[+-]?\d+(?:[.,_:]\d+)*
        (?:\s?(?:ms|µs|us|ns|s|sec|secs|seconds?|m|min|minutes?|h|hours?|[KMG]?i?B|%)\b)?)
    """,
    patterns.X,
)


COMPILING = ("go compile", "rustc", "compile", "TS", "E0")
_EXPRESSION = patterns.compile(
    r"[&*!]?\b[A-Za-z_][\w.]*(?:(?:\([^()\n]*\)|\[[^\[\]\n]*\])[\w.]*)+|"
    r"[&*!]?\b[A-Za-z_][\w.]*(?P<of> \((?:value|variable|constant|untyped|no value)\b)"
)
OPTION = patterns.compile(r"[`'\"‘“](-{0,2}\w[\w-]*)['`\"’”]")


@remembered(256)
def template_of(message: str, types: tuple[str, ...] = ()) -> str:
    """The message in lower case with what varies from run to run replaced: `<path>`, `<q>`, `<n>`, `<hash>`, … Of a
    compiler's also an operand (`<e>`); a refused option stays."""
    if "usage" in types:
        message = OPTION.sub(lambda option: option[1] or "", message[:1_000])
    elif any(kind.startswith(COMPILING) for kind in types):
        message = _EXPRESSION.sub(lambda operand: f"<e>{operand['of'] or ''}", message[:1_000])
    text = _VARYING.sub(lambda found: f"<{found.lastgroup}>", composed(message[:1_000]))
    return " ".join(text.split()).lower()[:500]


_TIMED = ("(<n>)", "[<n>]", "(<n>]", "[<n>)")
"""How long a run took."""
_ALONE = patterns.compile(r"(?<![\w<])[^\w\s<]+(?![\w<])")
"""Marks that stand alone."""

_PLACE = patterns.compile(r"(?::\d+){1,2}$")
_DRAWN = patterns.compile(r"\d+|\b[0-9a-f]*\d[0-9a-f]*[a-f][0-9a-f]{5,}\b")
_TEMPORARY = patterns.compile(r"(?i)(?:^|[/\\])(?:te?mp|te?mp[\w-]*[\d_][\w-]*|t|pytest-of-\w+)[/\\]")


@remembered(512)
def form_of_line(line: str) -> str:
    """The line in lower case with what varies from run to run and from checkout to checkout replaced; what it quotes,
    tests and files stay, a file by its name."""
    text = _VARYING.sub(_as_named, composed(line[:1_000]))
    for timed in _TIMED:
        text = text.replace(timed, " ")
    return " ".join(_ALONE.sub(" ", text).split()).lower()[:500]


def _as_named(found: patterns.Match[str]) -> str:
    what = found.lastgroup
    if what == "q":
        return f"<{_file(found[0][1:-1])}>"
    return _file(found[0]) if what == "path" else f"<{what}>"


def _file(path: str) -> str:
    """The name of a file, without the line; of a temporary one only that it is one, since its name is drawn."""
    whole = _PLACE.sub("", path) if ":" in path else path
    name = whole.replace("\\", "/").rstrip("/").rpartition("/")[2]
    if "." not in name and _TEMPORARY.search(path):
        return "<path>"
    return name if name.isalpha() else _DRAWN.sub("<n>", name)


def as_then(now: str, then: str) -> str:
    """A line as it was printed then, where that was kept; else as it is now, without the numbers that have changed."""
    return then if form_of_line(then) == form_of_line(now) else _PLACED.sub("", now)


_PLACED = patterns.compile(r"(?::\d+)+\b|\(\d+,\d+\)| ?\(\d[\d.]*m?s\)")
"""Where in a file, and how long: of one run."""


@remembered(16)
def plain(text: str) -> str:
    """Terminal output without colours and cursor movements, carriage returns as line ends."""
    if "\x1b" in text:
        text = ANSI.sub("", text)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
