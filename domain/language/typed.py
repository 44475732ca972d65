"""What of a user's prompt was typed, and what was pasted into it or put there by the client."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from memctl.domain.events.event import Payload
from memctl.domain.events.observations import NoticeReceived, PromptSubmitted, ResponseReceived, ToolOutcome
from memctl.domain.language.prompts import BLANK, said_in
from memctl.domain.support import patterns
from memctl.domain.support.provenance import Provenance


class Passage(NamedTuple):
    """Characters `start` to `end` of a prompt, of one origin. Only what is typed is the user's word."""

    start: int
    end: int
    origin: Provenance


_CLIENT = patterns.compile(
    r"\s*(?:Implement the following plan|Please implement this plan|Execute the following plan|"
    r"\[Request interrupted|Caveat: The messages below|This session is being continued|"
    r"# (?:AGENTS\.md|Context from my IDE|Files mentioned)|\[\[ ## \w+ ## \]\]|"
    r"<(?:ide_|system-reminder|environment_context|user_instructions)|"
    r"The user opened the file|The user selected the lines|The following is the (?:plan|conversation))",
    patterns.I,
)
_FROM_HERE = patterns.compile(
    r"""^[ \t>*_#-]*(?:
        (?:from|to|cc|subject|date|sent|reply-to|message-id|von|betreff):\s\S
        |(?:an|gesendet|datum|de|para|asunto|fecha|enviado|à|objet|envoyé|보낸\ ?사람|받는\ ?사람|제목|날짜|发件人
            |收件人|主题|差出人|宛先|件名)\ ?:\s?\S
        |(?:이슈|버그(?:\ ?리포트)?|리뷰|댓글|메일|본문|재현\ (?:방법|절차)|(?:기대|예상)\ (?:결과|동작)|課題|問題
            |再現手順|期待|问题(?:描述)?|描述|复现步骤|预期|fehlerbericht|beschreibung|erwartetes\ verhalten|rückmeldung
            |description\ du\ problème|comportement\ attendu|rapport\ de\ bogue|descripción|comportamiento\ esperado
            |informe\ de\ error)\ ?(?::|$)
        |-+\s*(?:original|forwarded|begin|start)\b
        |begin\ forwarded\ message
        |on\ .{4,80}\ wrote:\s*$
        |(?:here(?:'s|\ is|\ are)|this\ is|see|below\ is|below\ are)\b.{0,80}:\s*$
        |(?:the\ )?(?:(?:github\ |gitlab\ |jira\ |linear\ |pr\ |code\ |review\ |bot\ |their\ |his\ |her\ )?
            (?:issue|ticket|bug\ report|email|e-mail|mail|message|comments?|review|feedback|readme|docs?|documentation
            |article            |page|web\ ?page|post|thread|discussion|transcript|response|answer
            |changelog|release\ notes?|spec|description|summary|context|quote|instructions?|plan|prompt))
            (?:\ (?:body|text|content|comment|description|\#?\d+|from\ [^:\n]{1,40}|says|said|reads))?:(?:\s|$)
        |(?:the\ )?(?:logs?|output|errors?|stack\ ?trace|traceback):\s*$
        |[^\n]{0,60}\bmessage\ from\ (?:an|another|the|a)\b
        |\[{1,2}\ ?\#{2}|@?\[(?:system|user|assistant)\]:
        |\S{1,40}(?:\[bot\]|\ commented|\ wrote|\ said|\ replied|\ left\ a\ comment|\ reviewed)\b
        |(?:coderabbit\S*|copilot|gemini-code-assist|sourcery|dependabot|renovate|cursor\ bugbot|github-actions)\b
        |[^\n]{0,100}\b(?:feedback|review|comments?|findings?)\b[^\n]{0,100}:\s*$
        |\S{1,40}\ opened\ (?:this\ issue|this\ pull\ request)?\ ?(?:on\ |\d+\ |last\ |yesterday|today)
        |summary\s*$|description\s*$
        |(?:issue|pr|pull\ request)\ ?\#\d+
        |\#{1,6}\s\S
        |(?:commit|diff\ --git|index)\ [0-9a-f]{7,}|diff\ --git\ |@@\ -
        |(?:actionable\ comments|nitpick|potential\ issue|suggested\ (?:fix|change)|steps\ to\ reproduce
            |expected\ behaviou?r|actual\ behaviou?r|prompt\ for\ ai\ agents)
    )""",
    patterns.I | patterns.M | patterns.X,
)
"""A line from which on a prompt is a mail, an issue, a review, a document. What was typed stands in front of it."""

_BLOCK = patterns.compile(
    r"^[ \t]*(?:```|~~~).*?^[ \t]*(?:```|~~~)[^\n]*$|^[ \t]*(?:```|~~~).*\z", patterns.S | patterns.M
)
_TAGGED = patterns.compile(
    r"^[ \t]*<[A-Za-z][\w:-]*(?:\s[^<>\n]*)?>.*?(?:^|>|\S)</[A-Za-z][\w:-]*>|<!--.*?-->|"
    r"^[ \t]*<[A-Za-z][\w:-]*(?:\s[^<>\n]*)?>[ \t]*\n.*\z",
    patterns.S | patterns.M,
)
"""What stands in tags; behind a tag on a line of its own that nobody closes, all."""
_LINE = patterns.compile(
    r"""^[ \t]*(?:>|\||\$\ |❯|➜|%\ |PS\ [A-Z]:|at\ \S+\(|-{3,}|={3,}|\d+[:→|]|\[\d\d|\d{4}-\d\d-\d\d|[⏺✓✗⎿●│├└╭╰]
        |(?:error|warning|info|debug|fatal|note|hint|usage|traceback)\b[^\n:]{0,40}:|file\ "|\w+(?:Error|Exception)\b
        |\S+:\d+:\d+:?\s|[*•]\s\S+:\s\d+$|---\ FAIL|\s*\^
        |[\w.-]+@[\w.-]+[:~]\S*[$\#]\ )[^\n]*$""",
    patterns.I | patterns.M | patterns.X,
)
_REVIEW = patterns.compile(r"^[ \t*_]*(?:critical|high|medium|low)[ -]severity\b", patterns.I | patterns.M)
"""A line of a bot's review, below its title."""

_ADVISES = patterns.compile(
    r"\b[Cc]onsider (?:\w+ )?\w+ing\b|\b[Cc]onsider either\b|\bThe \S+ (?:function|method|comment|test|class|type)\b|"
    r"\bThe (?:function|method|comment|test) (?:on|should|is|silently|states)\b|"
    r"\bReplace lines? \d+|\bMinor suggestions?:"
)
_SPEAKS = patterns.compile(
    r"(?:^|[^\w'])(?:i|i'm|i've|i'd|me|my|we|you|your|please|let's|lets)(?:[^\w']|$)|\?\s*$", patterns.I
)
_IN_CODE = patterns.compile(r"\b[a-z]+[A-Z]\w+|\b[A-Z][a-z]+[A-Z]\w+|\b\w+\(\)|\blines? \d+|\w\.\w+\(")


def _is_review(prompt: str) -> bool:
    """Whether it reads like a remark on code that nobody addresses to anybody: it advises, names code, and speaks to
    none."""
    if not (_ADVISES.search(prompt) and _IN_CODE.search(prompt)):
        return False
    return _SPEAKS.search(prompt) is None


_LONG = 1_500
"""Characters from which a prompt without any such mark counts as a document that was pasted whole."""


def _shown(text: str) -> tuple[str, Sequence[int]]:
    """A text as people see it, without signs that show nothing, and where each of its characters stands."""
    if text.isascii():
        return text, range(len(text))
    kept = [
        (at, seen if len(seen := unicodedata.normalize("NFKC", char)) == 1 else char)
        for at, char in enumerate(text)
        if unicodedata.category(char) != "Cf"
    ]
    return "".join(char for _, char in kept), [at for at, _ in kept]


def passages_of(prompt: str) -> tuple[Passage, ...]:
    """The prompt in passages without a gap, each typed, pasted or the client's.

    Behind the heading of a mail, an issue, a review or a document all is pasted: who pastes marks no end. Where in
    doubt, a passage is pasted: a user who is not heard says it again, and one in whose name another speaks never knows.
    """
    if not prompt:
        return ()
    if _CLIENT.match(prompt):
        return (Passage(0, len(prompt), Provenance.CLIENT),)
    if len(prompt) >= _LONG or _REVIEW.search(prompt) or _is_review(prompt):
        return (Passage(0, len(prompt), Provenance.USER_PASTED),)
    shown, places = _shown(prompt)
    tail = _FROM_HERE.search(shown)
    end = places[tail.start()] if tail else len(prompt)
    blocks = [match.span() for pattern in (_BLOCK, _TAGGED, _LINE) for match in pattern.finditer(prompt[:end])]
    found: list[Passage] = []
    at = 0
    for start, stop in sorted(blocks):
        if stop <= at:
            continue
        if start > at:
            found.append(Passage(at, start, Provenance.USER_TYPED))
        found.append(Passage(max(start, at), stop, Provenance.USER_PASTED))
        at = stop
    if at < end:
        found.append(Passage(at, end, Provenance.USER_TYPED))
    if end < len(prompt):
        found.append(Passage(end, len(prompt), Provenance.USER_PASTED))
    return tuple(found)


def is_typed(prompt: str) -> bool:
    """Whether anything in a prompt was typed. Asked of a whole one: of its beginning nobody knows."""
    return any(each.origin is Provenance.USER_TYPED and prompt[each.start : each.end].strip()
               for each in passages_of(prompt))  # fmt: skip


def typed_of(prompt: str) -> str:
    """The prompt with blanks for all that was not typed, line breaks and offsets kept."""
    return "".join(
        prompt[start:end]
        if origin is Provenance.USER_TYPED
        else "".join(char if char == "\n" else BLANK for char in prompt[start:end])
        for start, end, origin in passages_of(prompt)
    )


def user_typed(prompt: str) -> str:
    """What of a whole prompt of a client is the user's own word, offsets kept; blank where it is none."""
    said = said_in(prompt)
    return typed_of(said.text) if said.by == "user" else ""


_OF_THE_WEB = ("web", "fetch", "browse")
"""Parts of the names of tools that read pages."""


def reads_pages(tool: str) -> bool:
    """Whether a tool of that name shows what stands in the web."""
    return any(part in tool.lower() for part in _OF_THE_WEB)


def origin_of(payload: Payload, start: int, end: int) -> Provenance:
    """Whose words characters `start` to `end` of an observation's text are."""
    match payload:
        case PromptSubmitted(subagent=subagent, meta=meta, text=text):
            if subagent or meta or said_in(text).by == "client":
                return Provenance.AGENT if subagent else Provenance.CLIENT
            if user_typed(text)[start:end].strip() == text[start:end].strip():
                return Provenance.USER_TYPED
            return passages_of(text)[0].origin if _CLIENT.match(text) else Provenance.USER_PASTED
        case NoticeReceived(kind="queued-prompt", text=text):
            return origin_of(PromptSubmitted(text=text), start, end)
        case ResponseReceived(subagent=subagent):
            return Provenance.SUBAGENT if subagent else Provenance.AGENT
        case ToolOutcome(tool=tool, file=file):
            if reads_pages(tool):
                return Provenance.WEB
            return Provenance.FILE if file else Provenance.TOOL
        case _:
            return Provenance.TOOL
