"""Message templates: what stays of an error's message when the run, the machine and the names are taken out."""

from __future__ import annotations

import unicodedata

from memctl.domain.support import patterns
from memctl.domain.support.remembered import remembered
from memctl.domain.support.text import known

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
    | (?P<q>(?<!\w)'[^'\n]{{0,300}}?'(?!\w) | "[^"\n]{{0,300}}?" | `[^`\n]{{0,300}}?` | [‘“][^’”\n]{{0,300}}?[’”])
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


@remembered(256)
def template_of(message: str) -> str:
    """The message in lower case with what varies from run to run replaced: `<path>`, `<q>`, `<n>`, `<hash>`, …"""
    text = _VARYING.sub(lambda found: f"<{found.lastgroup}>", unicodedata.normalize("NFKC", known(message[:1_000])))
    return " ".join(text.split()).lower()[:500]


def plain(text: str) -> str:
    """Terminal output without colours and cursor movements, carriage returns as line ends."""
    if "\x1b" in text:
        text = ANSI.sub("", text)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
