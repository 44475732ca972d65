"""What stands in a user's place in a transcript, and what a user's own words do to the task at hand."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from string import ascii_letters, digits
from typing import Literal, NamedTuple

from memctl.domain.events.facts import PromptKind
from memctl.domain.shell.programs import words_of
from memctl.domain.support import patterns
from memctl.domain.support.remembered import remembered
from memctl.domain.support.text import Blanked, Runs

_CLIENT_TAGS = (
    "system-reminder|ide_opened_file|ide_selection|ide_diagnostics|task-notification|local-command-stdout|"
    "local-command-stderr|local-command-caveat|bash-stdout|bash-stderr|command-message|command-contents|"
    "environment_context|user_instructions|INSTRUCTIONS|system_notification|current_datetime|turn_aborted|"
    "user-prompt-submit-hook|new-diagnostics|system_reminder|skill-context|permissions instructions|"
    "collaboration_mode|session-start-hook|"
    "post-tool-use-hook|function_results|teammate-message|agent-message|cross-session-message|slack-ping|"
    "slack-tag-message|coordinator-relay|remote-review|fetched-web-content|untrusted-widget-state|memctl-context|"
    "hook_context|session_context"
)
REFERENCED, _END_OF_REFERENCED = "--- Content from referenced files ---", "--- End of content ---"
"""Between these stand the files that a prompt to Gemini CLI names by `@path`. A file may hold the second one too."""
_CLIENT_BLOCK = patterns.compile(rf"<(?P<tag>{_CLIENT_TAGS})(?:\s[^>]*)?>|{REFERENCED}")
_CLIENT_TEXT = patterns.compile(
    r"\s*(?:\[Request interrupted by user|Caveat: The messages below|This session is being continued from a previous|"
    r"# AGENTS\.md instructions|API Error|Stop hook feedback|Operation stopped by hook: |Base directory for this skill|"
    r"\[Image: |Continue from where you left off|<retrieval_status>|Unknown (?:slash command|skill): |Goodbye!|"
    r"No response requested|# Autonomous loop (?:tick|check)|# /loop tick|The following one-shot scheduled tasks? w|"
    r"Recurring job \S+ \(cron |<tick>|<channel source=)"
)
_ADDED_IN_FRONT = patterns.compile(r"\s*(?:# (?!My request)|This block is automatically supplied)")
_REQUEST = "\n## My request for Codex:"
"""Behind it stand the user's own words; in front what an editor or app adds: open files, selections, attachments."""

BLANK = "\N{EM SPACE}"
"""What stands for words that are not the user's: white, but no indentation, which would make code of the rest."""

_IDES = patterns.compile(r"\s*# Context from my IDE")
_COMMAND = patterns.compile(
    r"\s*(?:<command-message>[^<]*</command-message>\s*)?<command-name>\s*/?(?P<name>[^<]*?)\s*</command-name>"
)
_ARGUMENTS = patterns.compile(r"<command-args>(?P<args>.*?)(?:</command-args>|\Z)", patterns.S)
_TYPED_COMMAND = patterns.compile(r"\s*/(?P<name>[a-z][\w:-]{1,40})(?:\s+(?P<args>\S.*))?\s*\Z", patterns.S)
_SHELL = patterns.compile(r"\s*<bash-input>(?P<command>.*?)</bash-input>", patterns.S)

_BUILT_IN = words_of(
    "add-dir agents bashes bug clear compact config context cost copy doctor effort exit export extra-usage fast "
    "feedback fork help hooks ide init-verifiers insights install-github-app keybindings login logout mcp memory "
    "mobile model new output-style permissions plan plugin plugins privacy-settings quit reload-plugins "
    "release-notes remote-control remote-env rename resume rewind sandbox skills stats status statusline "
    "terminal-setup theme todos upgrade usage vim voice approvals diff mention prompts undo"
)
"""Commands of the client itself: they ask for no work."""

FRESH_START = frozenset({"clear", "new", "resume"})


class Said(NamedTuple):
    """What a prompt is. `text` is as long as the prompt, with all that the user did not say blanked, so that places in
    it are places in the prompt; `words` is that without blanks around. `alone` where they stand in the prompt by
    themselves, or in a frame of the client's: beside a client's block they may have been pasted with it.
    """

    by: Literal["user", "command", "client"]
    text: str
    words: str
    command: str = ""
    alone: bool = True


@remembered(8, longest=1 << 16)
def said_in(prompt: str) -> Said:
    """Separate a user's own words from what the client put in their place."""
    alone = True
    if _ADDED_IN_FRONT.match(prompt) and (request := prompt.rfind(_REQUEST)) >= 0:
        # Files and selections stand in front, and may hold such a line: the client's own is the last.
        alone = _IDES.match(prompt) is not None and prompt.find(_REQUEST) == request
        request += len(_REQUEST)
        prompt = BLANK * request + prompt[request:]
    if _CLIENT_TEXT.match(prompt):
        return Said("client", "", "")
    if shell := _SHELL.match(prompt):
        command = shell["command"].strip()
        return Said("command", "", f"! {command}", "!") if command else Said("client", "", "")
    if named := _COMMAND.match(prompt):
        given = _ARGUMENTS.search(prompt)
        said = _command(prompt, named["name"], given.span("args") if given else (0, 0))
        behind = prompt[given.end() :] if given else ""
        return said._replace(alone=not behind.strip())
    if prompt.lstrip()[:1] == "/" and (typed := _TYPED_COMMAND.match(prompt)):
        return _command(prompt, typed["name"], typed.span("args") if typed["args"] else (0, 0))
    text = _without_client_blocks(prompt)
    words = text.strip()
    return Said("user", text, words, alone=alone and text == prompt) if words else Said("client", "", "")


def framed_by_another(prompt: str, agent: str) -> bool:
    """Whether a prompt stands in what Codex puts around it in an editor, and came to another agent: it was pasted."""
    return agent != "codex" and _ADDED_IN_FRONT.match(prompt) is not None and _REQUEST in prompt


def _without_client_blocks(prompt: str) -> str:
    """The prompt with blanks for what the client wrote between its own signs; without a second one, to the end. What
    stands between two blocks of one name at its ends may be a text in the first that closes it and opens it again."""
    first = _CLIENT_BLOCK.match(prompt.lstrip())
    if first and first["tag"]:
        _, closed, rest = prompt.rpartition(f"</{first['tag']}>")
        if closed and (not rest.strip() or not _without_client_blocks(rest).strip()):
            return BLANK * len(prompt)
    pieces: list[str] = []
    end = 0
    for block in _CLIENT_BLOCK.finditer(prompt) if "<" in prompt or REFERENCED in prompt else ():
        if block.start() < end:
            continue
        close = f"</{block['tag']}>" if block["tag"] else _END_OF_REFERENCED
        at = prompt.find(close, block.end()) if block["tag"] else prompt.rfind(close, block.end())
        block_end = at + len(close) if at >= 0 else len(prompt)
        pieces += prompt[end : block.start()], BLANK * (block_end - block.start())
        end = block_end
    return "".join([*pieces, prompt[end:]])


def _command(prompt: str, name: str, args: tuple[int, int]) -> Said:
    start, end = args
    given = prompt[start:end].strip()
    words = f"/{name} {given}".strip()
    if name.split(":")[-1] in _BUILT_IN:
        return Said("command", "", words, name)
    text = BLANK * start + prompt[start:end] + BLANK * (len(prompt) - end)
    return Said("user", text, words, name)


_THANKS = patterns.compile(
    r"\W*(?:(?:ok(?:ay)?|yes|yeah|ah|oh|wow|haha)[,.! ]+)?(?:many thanks|thanks|thank you|thank u|thx|tysm|ty\b|"
    r"great|perfect|"
    r"awesome|excellent|fantastic|wonderful|amazing|brilliant|nice|cool|lovely|love it|good (?:job|work|stuff)|"
    r"well done|"
    r"(?:it |that |this |now it )?works(?: now| great| perfectly| well)?\b|(?:looks|all|sounds) good|lgtm|success|"
    r"that (?:did it|fixed it|was it|solved it)|👍|🎉|🙏|❤|💯|"
    r"고마워|고맙|감사|땡큐|완벽|훌륭|좋네|좋다|좋아|잘했|잘 했|최고|굿|잘 ?(?:된다|되네|돼|됩니다|동작))",
    patterns.I,
)
_COMPLAINT = patterns.compile(
    r"\W*(?:no+\b(?! need| problem| worries)|nope|nah|wrong|incorrect|wait\b|stop\b|hmm+ no|that(?:'s| is|s)? "
    r"(?:not|wrong|incorrect|n't)|"
    r"this (?:is|isn't|does) ?(?:not|n't|wrong|still)|not (?:what|quite|right|like|that|really)|i (?:meant|mean\b|"
    r"didn'?t|did not|said|asked|was talking|never|told)|"
    r"you (?:should(?:n'?t| not)? have|forgot|missed|didn'?t|did not|broke|removed|deleted|were supposed|misunder|"
    r"just should|keep)|"
    r"(?:please )?(?:undo|revert|roll ?back)\b|don'?t (?:do|change|touch|add|use|remove|commit|push|stash)|do not "
    r"|actually,? (?:no|that|it|this|i)|"
    r"(?:it |that |this )?(?:is |'s )?still (?:not|n't|fail|broken|an? (?:issue|error|problem)|get|see|show|doesn|"
    r"does|happen|the same|there|wrong)|"
    r"(?:it |that |this )?(?:does ?n'?t|did ?n'?t|is ?n'?t|does not|did not) (?:work|help|fix|compile|build|run|look)|"
    r"(?:it|that|this) (?:failed|fails|broke|crashe[sd])\b|why (?:did|are|would|do) you\b|instead of |"
    r"uh ?oh|ugh\b|argh|but (?:you|that|it|this|i) |same (?:error|issue|problem)|"
    r"아니|아냐|아뇨|틀렸|틀린|잘못|그게 아니|이게 아니|그거 말고|말고|되돌|"
    r"원래대로|취소|안 ?(?:돼|되|됩|된다)|여전히|아직도|왜 (?:자꾸|이렇게|그렇게)|하지 ?마)",
    patterns.I,
)
_CONTINUES = patterns.compile(
    r"\W*(?:and\b|also\b|then\b|now (?:do|also|let|the same|we|commit|push|can)|ok(?:ay)?\b|k\b|yes\b|yeah\b|"
    r"yep\b|yup\b|sure\b|right\b|alright|"
    r"go (?:ahead|on|for)|continue|proceed|carry on|keep going|do (?:it|that|so|this|the same|both|all|[0-9])|"
    r"let'?s (?:do|go|try|keep|use|see|address|fix|implement|also|adjust|add)\b|"
    r"done\b|(?:please )?(?:commit|push|merge|rebase|run|rerun|retry|try|test|deploy|release|publish|save|format|"
    r"lint)\b(?!\S)|"
    r"so\b|but\b|or\b|because|if so|in that case|what about|how about|what if|did (?:you|we)|are we|have (?:you|"
    r"we)|does (?:it|this|that)|is (?:it|this|that)|"
    r"was (?:it|this|that)|can (?:it|this|that)|could (?:it|this|that|we)|should (?:it|this|that|we)|do (?:we|"
    r"you)|can we|"
    r"(?:use|apply|address|include|mention|ensure|make sure|move|rename|keep|remove|drop|delete|add|update|"
    r"change) (?:it|that|this|these|those|them|the (?:first|second|last|same|other|prior|comment|test|above))|"
    r"(?:the|that|those|these|this|it|they)\b|almost|"
    r"option|(?:[0-9]+|[a-d])(?:[.,) ]|$)|그리고|또|이제|계속|(?:네|응|어)(?:\W|$)|넵|"
    r"그래|좋아|커밋|푸시|그럼|그러면|그건|이건|그거|이거|추가로|진행|해줘$)",
    patterns.I,
)
_NEW_WORK = patterns.compile(
    r"\W*(?:implement the following plan|new (?:task|feature|topic|issue|bug)|next (?:task|up|thing|issue|:)|"
    r"(?:let'?s |now )?(?:move|switch) (?:on |over )?to\b|"
    r"(?:on to|onto) the next|different (?:topic|question|task)|unrelated|separately|another (?:task|thing|bug|"
    r"issue|question)|"
    r"i'?d like to work on|i want to work on|let'?s work on|let'?s start|"
    r"다음 (?:작업|과제|태스크|일|으로)|새로운|다른 (?:작업|질문|문제|얘기)|별개로)",
    patterns.I,
)
_ASKS = patterns.compile(
    r"\b(?:please|can you|could you|would you|help me|i want|i need|i'd like|we need|we should|you should|let's|"
    r"implement|add|create|write|build|make|fix|debug|investigate|find|check|look|review|refactor|rename|move|remove|"
    r"delete|update|upgrade|change|replace|migrate|convert|extract|document|explain|describe|summari[sz]e|analy[sz]e|"
    r"set ?up|configure|install|deploy|release|publish|run|test|generate|design|plan|improve|optimi[sz]e|support|"
    r"enable|disable|integrate|port|clean|simplify|split|merge|rebase|commit|push|show|tell|give|read|search|ensure|"
    r"consider|respond|address|log|bring|restore|get|use|put|spawn)\b|"
    r"(?:해 ?줘|해 ?주세요|해라|하자|할까|해 ?봐|줘(?:\W|$)|주세요|부탁|만들|고쳐|고치|수정|추가|"
    r"구현|작성|삭제|제거|변경|바꿔|바꾸|확인|검토|설명|"
    r"알려|찾아|분석|정리|개선|테스트|리팩토링|설치|설정|왜|어떻게|무엇|뭐|어디|인가요|나요|까요)",
    patterns.I,
)
_REFERS = patterns.compile(
    r"\b(?:this|it|these|those|them|they|(?:do|did|does|is|was|about|like|to|for|of|in|with|on|after|by|all) that|"
    r"that(?=\W*$)|the (?:new|added|above|prior|previous|last|same|other|changes?|results?)|"
    r"as well|too|also|again)\b|이거|그거|이것|그것|저것|방금|위에|같은",
    patterns.I,
)
_NO_LETTERS = f"{digits}_"
_WORDS = Runs(ascii_letters + _NO_LETTERS)
_HANGUL = patterns.compile("[가-힣]")
_IN_HANGUL = Blanked(but="", first="가", last="힣")
_COMMON = words_of(
    "this that with from have will would could should there their they them then than what when where which while "
    "about into your just also only some more make sure does please need want like been were here over very much "
    "file files code test tests using used line lines change changes update added adding implement following plan "
    "check look know think thing things still case same other because first second work working right good okay"
)


@remembered(256)
def words_in(text: str) -> frozenset[str]:
    """The words of a text that say what it is about."""
    text = text[:20_000]
    found = {word.lower() for run in set(_WORDS.within(text)) if len(word := run.lstrip(_NO_LETTERS)) > 3}
    if _has_hangul(text):
        found.update(text.translate(_IN_HANGUL).split())
    return frozenset(word[:7] for word in found - _COMMON if len(word) > 1)


def _has_hangul(text: str) -> bool:
    return not text.isascii() and _HANGUL.search(text) is not None


def length_of(words: str) -> int:
    """Length in words; three Hangul characters count as one, as long as a sentence of ten counts as three."""
    hangul = len("".join(words.translate(_IN_HANGUL).split())) if _has_hangul(words) else 0
    return len(words.split()) if hangul * 2 < len(words) else max(len(words.split()), hangul // 3)


def is_thanks(words: str) -> bool:
    """Whether the words praise or thank."""
    return bool(_THANKS.match(words)) and not _COMPLAINT.match(words)


def is_complaint(words: str) -> bool:
    """Whether the words say that something went wrong, or is not what was meant."""
    return bool(_COMPLAINT.match(words))


_SAYS_NO = patterns.compile(
    r"\W*(?:no+|nope|nah)\b(?!\W*(?:that|this|it|you|not|wrong|still|the|i)\b)|\W*(?:아니요?|아뇨)[, ]",
    patterns.I,
)


def says_no(words: str) -> bool:
    """Whether the words only decline: said to a question, they find fault with nothing."""
    return bool(_SAYS_NO.match(words))


_CONCEDES = patterns.compile(
    r"\W*(?:(?:ah|oh|yes|yeah|no|hm+|ok(?:ay)?|sorry|wait|excellent (?:point|catch))\b[,.!—– -]*)*"
    r"(?:you(?:['’]| a)re (?:\w+ )?right\b|my (?:mistake|bad)\b|i was wrong\b|(?:네, )?(?:말씀이 )?맞습니다|제 실수)",
    patterns.I,
)


def concedes(answer: str) -> bool:
    """Whether an answer begins by saying that what was answered before was not right."""
    return bool(_CONCEDES.match(answer))


Spoken = Callable[[AbstractSet[str]], AbstractSet[str]]
"""Those of some words that were spoken of before."""


def asks_for_work(words: str) -> bool:
    """Whether the words ask for something."""
    return "?" in words or bool(_ASKS.search(words))


def kind_of(words: str, *, open_task: bool, rested: bool, about: Spoken = frozenset) -> PromptKind:
    """What a user's words do to the task at hand.

    `rested` says that its work was committed, or lies hours back; `about` gives those of some words that it has been
    about, and is asked only where they decide.
    """
    length = length_of(words)
    thanks = _THANKS.match(words)
    if thanks and length_of(words[thanks.end() :]) <= 4 and not asks_for_work(words[thanks.end() :]):
        return "thanks"
    if not open_task:
        return "opening" if length >= 3 or asks_for_work(words) else "follow_up"
    if _NEW_WORK.match(words):
        return "opening"
    if _COMPLAINT.match(words):
        return "correction"
    if thanks or length <= 4 or not asks_for_work(words):
        return "follow_up"
    return "opening" if _is_new(words, length, about, rested=rested) else "follow_up"


def _is_new(words: str, length: float, about: Spoken, *, rested: bool) -> bool:
    """Whether a request begins a task of its own, and does not go on with the one at hand."""
    if _CONTINUES.match(words):
        # A long request that shares nothing is a new one, however it begins.
        return rested and length >= 20 and _shared(words, about) < 0.1
    if length < (5 if rested else 7) or (length < 16 and _REFERS.search(words)):
        return False
    return _shared(words, about) < (0.4 if rested else 0.25)


def _shared(words: str, about: Spoken) -> float:
    """Which part of the content words has been spoken of, 0 to 1."""
    own = words_in(words)
    return len(about(own)) / len(own) if own else 1.0
