"""Whose words a prompt holds: what the user typed, what was pasted, and what the client put there.

Three functions ask more and more: `typed_of` keeps what shows that it was typed; `own_word` keeps a prompt that can
settle something for good, since all of it was typed, and to the agent; `users_own_word` asks that of a client's raw
prompt. `origin_of` names the origin of any part of an observation. Who sent the event decides on top of that
(`memctl.domain.support.provenance.attributed`).
"""

from __future__ import annotations

from typing import NamedTuple

from memctl.domain.events.event import Payload
from memctl.domain.events.observations import NoticeReceived, PromptSubmitted, ResponseReceived, ToolOutcome
from memctl.domain.language.prompts import BLANK, said_in
from memctl.domain.support import patterns
from memctl.domain.support.provenance import Provenance
from memctl.domain.support.remembered import remembered
from memctl.domain.support.wording import seen


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
_SPEAKS = patterns.compile(
    r"(?:^|[^\w'’])(?:i|i['’](?:m|ve|d|ll)|me|my|we(?:['’](?:re|ve|d|ll))?|us|our|you(?:['’](?:re|ve|d|ll))?|your|please|"
    r"pls|let['’]?s)(?:[^\w]|$)|\?|"
    r"(?:줘|주세요|해라|하자|할까|부탁|나요|까요)",
    patterns.I,
)
"""Words of one who speaks to somebody."""
_ORDERS = patterns.compile(
    r"(?:always|never|don['’]?t|do|use|add|avoid|build|change|check|clean|commit|continue|create|debug|delete|deploy|"
    r"document|drop|ensure|explain|extract|file|find|fix|format|generate|go|implement|improve|install|investigate|keep|"
    r"list|log|look|make|merge|migrate|move|open|plan|prefer|pull|push|put|read|rebase|refactor|release|remember|remove|"
    r"rename|replace|report|resolve|restore|retry|revert|review|run|search|set|show|simplify|split|start|stop|summari[sz]e|"
    r"switch|tell|test|try|undo|update|upgrade|verify|write|all|almost|done|from|going|in|answer|reply|respond|"
    r"speak|talk|why|how|what|where|which|who|when|is|are|does|did|can|could|should|ok(?:ay)?|yes|yeah|no|nope|hmm|thanks?)\b",
    patterns.I,
)
"""How a line begins that asks for something, or settles it."""
_PLAIN = patterns.compile(r"[^\s\w`'\"“‘(@/.~]|[^\w\s]{3}|//|/\*|__|~\s|`[^`]*`\s*\z|\d+[.):|→](?:\s|\z)|"
                          r"\w+(?:Error|Exception)\b|[\w.-]+=|"
                          r"(?:error|warning|note|hint|fatal|usage|traceback)\b", patterns.I)  # fmt: skip
"""How a line begins that a program printed, or that marks of a document, a list or a quotation stand before."""
_INTRODUCES = patterns.compile(r"[:：](?:\s+\S+\s+\S|\s*[^\x00-\x7f]{6}|\s+\S{24})|\s[-–—]{2,}\s|<[A-Za-z!/]|\s[|»«]\s")
_LINE = patterns.compile(r"\S[^\n\r\x{85}\x{2028}\x{2029}\x0b\x0c]*")

LONGEST_LINE, LONGEST_UNADDRESSED, LONGEST_WORD = 400, 160, 240
"""Characters of a line that somebody types; of one that speaks to nobody; and of a prompt that settles something for
good. Of set 1, half of all prompts have under 57 characters, and three in four are of one line."""


@remembered(8, longest=1 << 16)
def _typed_line(prompt: str) -> tuple[int, int, bool]:
    """Where the typed line of a prompt lies, and whether it is all of the prompt; empty where nothing shows that it was
    typed.

    Who types sends by the key that breaks lines, so what comes with line breaks was mostly pasted: of a longer prompt
    only the first line can be typed, and of a line what stands before a colon. Nobody types what is hidden.
    """
    first = _LINE.search(prompt)
    if first is None or first.end() - first.start() > LONGEST_LINE or _PLAIN.match(first[0]) or seen(prompt) != prompt:
        return 0, 0, False
    cut = _INTRODUCES.search(first[0])
    start, end = first.start(), first.start() + cut.start() if cut else first.end()
    line = prompt[start:end].strip()
    informal = not line[:1].isupper() or _ORDERS.match(line) is not None
    if not (_SPEAKS.search(line) or (informal and len(line) <= LONGEST_UNADDRESSED)):
        return 0, 0, False
    return start, end, cut is None and not prompt[end:].strip()


def passages_of(prompt: str) -> tuple[Passage, ...]:
    """The prompt in passages without a gap: typed is what shows that it was, all else may have been pasted.

    A user who is not heard says it again, and one in whose name another speaks never knows.
    """
    if not prompt:
        return ()
    if _CLIENT.match(prompt):
        return (Passage(0, len(prompt), Provenance.CLIENT),)
    start, end, _ = _typed_line(prompt)
    found = (
        Passage(0, start, Provenance.USER_PASTED),
        Passage(start, end, Provenance.USER_TYPED),
        Passage(end, len(prompt), Provenance.USER_PASTED),
    )
    return tuple(each for each in found if each.start < each.end)


def is_typed(prompt: str) -> bool:
    """Whether anything in a prompt was typed. Asked of a whole one: of its beginning nobody knows."""
    return any(each.origin is Provenance.USER_TYPED for each in passages_of(prompt))


def typed_of(prompt: str) -> str:
    """The prompt with blanks for all that does not show that it was typed, line breaks and offsets kept."""
    return "".join(
        prompt[start:end]
        if origin is Provenance.USER_TYPED
        else "".join(char if char == "\n" else BLANK for char in prompt[start:end])
        for start, end, origin in passages_of(prompt)
    )


_ADDRESSES = patterns.compile(
    r"(?:^|[^\w'’])(?:please|pls|let['’]?s|(?:can|could|would|will) you)(?:[^\w]|$)|\?|[가-힣]", patterns.I
)
"""What is said to an agent, and in hardly any text for others."""
_TO_OTHERS = patterns.compile(
    r"\b(?:thanks|thank you|thx)\W{0,2} (?:again )?for (?:the |your |this |a )?(?:\w+ )?(?:reports?|reporting|prs?|pull"
    r"|patch(?:es)?|contribut\w+|issue|opening|submi\w+|heads|review\w*|interest|feedback|late|quick)\b|"
    r"\byour (?:own )?(?:prs?|pull requests?|patch|issue|fork|contributions?|report|submission|team)\b|"
    r"^\s*(?:as per|per|according to) \w|"
    r"\blgtm\b|^\s*nit(?:pick)?\b|(?:^|[\s,])(?:cheers|best|regards|sincerely|greetings),? *[\n,]? *\w*\s*\z|"
    r"\b(?:hi|hello|hey|dear|moin)\W{1,2}(?:team|all|everyone|everybody|folks|guys|there|maintainers?|@)|"
    r"\bsorry (?:for|about) (?:the |my )?(?:late|delay|slow)|\bquick note\b|"
    r"\bi (?:had|have|hit|got) the same (?:problem|issue|bug|error)|\bwe should close this\b|\bi noticed that you\b|"
    r"\b(?:comments?|review|e?-?mail|message|feedback|reply|ticket|suggestion|advice) (?:from|by) \w|"
    r"\b(?:my|our|the|a) (?:colleague|boss|manager|reviewer|maintainer|lead|customer|client|teammate|coworker|bot)s? "
    r"(?:\w+ ){0,2}(?:says?|said|told|wrote|writes|wants?|asks?|asked|replied|commented|suggests?|suggested)\b|"
    r"\b(?:this|the) (?:mail|email|message|comment|thread|ticket)\b",
    patterns.I,
)
"""What stands in letters to others, reports of what others said, and comments on others' work."""
_SENTENCE = patterns.compile(r"[.!?]+[)\"'”’]*\s+|[;。！？]+\s*")


def own_word(prompt: str) -> str:
    """The prompt, offsets kept, where it can settle something for good: a short one, all of which was typed, and to
    nobody else. Blanks stand for sentences in another rhythm than its first: who begins small does not go on with
    capitals, and what is said before anybody is addressed, but for the first sentence, is of a text."""
    start, end, whole = _typed_line(prompt) if not _CLIENT.match(prompt) else (0, 0, False)
    if not whole or end - start > LONGEST_WORD or _TO_OTHERS.search(prompt):
        return ""
    kept, at, small = prompt[:start], start, prompt[start : start + 1].islower()
    ends = [match.end() for match in _SENTENCE.finditer(prompt, start, end)]
    first = prompt[start : ends[0] if ends else end]
    addressed = small or _ADDRESSES.search(first) is not None or _ORDERS.match(first) is not None
    for stop in (*ends, end):
        sentence = prompt[at:stop]
        strange = small and sentence[:1].isupper() and sentence[:2].strip() != "I"
        kept += BLANK * len(sentence) if strange or (at > start and not addressed) else sentence
        addressed = addressed or _ADDRESSES.search(sentence) is not None
        at = stop
    return kept + prompt[end:]


def users_own_word(prompt: str) -> str:
    """What of a whole prompt of a client is the user's own word, offsets kept; blank where it is none."""
    said = said_in(prompt)
    return own_word(said.text) if said.by == "user" and said.alone else ""


_OF_THE_WEB = ("web", "fetch", "browse")
"""Parts of the names of tools that read pages."""


def reads_pages(tool: str) -> bool:
    """Whether a tool of that name shows what stands in the web."""
    return any(part in tool.lower() for part in _OF_THE_WEB)


def origin_of(payload: Payload, start: int, end: int) -> Provenance:
    """Whose words characters `start` to `end` of an observation's text are."""
    match payload:
        case PromptSubmitted(subagent=subagent, meta=meta, text=text):
            said = said_in(text)
            if subagent or meta or said.by == "client":
                return Provenance.AGENT if subagent else Provenance.CLIENT
            if said.alone and typed_of(said.text)[start:end].strip() == text[start:end].strip():
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
