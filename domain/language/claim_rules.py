"""The rules by which claims are read out of sentences: which words must stand where, in English and Korean.

A pattern is matched from the start of one sentence; its group `what` is what is claimed, and `skip` what is no part of
the claim though it stands before it. The first rule that matches
decides. A new rule needs an example in the tests, and a near miss.
"""

from __future__ import annotations

import msgspec

from memctl.domain.events.facts import InsightKind
from memctl.domain.support import patterns


class ClaimRule(msgspec.Struct, frozen=True):
    """What is read, with which polarity and confidence (0 to 1); `everywhere` for what is said of the person."""

    name: str
    kind: InsightKind
    pattern: patterns.Pattern[str]
    polarity: int
    confidence: float
    everywhere: bool = False
    lasting: bool = False
    """Its words say that it is meant to last."""
    answers: bool = False
    """Counts only as the answer to a question that has one (`insights._ONE_ANSWER`): the package manager, say."""


def _rule(
    name: str,
    kind: InsightKind,
    pattern: str,
    polarity: int = 1,
    confidence: float = 0.7,
    everywhere: bool = False,
    *,
    answers: bool = False,
) -> ClaimRule:
    lasting = name in _MEANT_TO_LAST
    compiled = patterns.compile(pattern, patterns.I | patterns.X)
    return ClaimRule(name, kind, compiled, polarity, confidence, everywhere, lasting, answers)


_MEANT_TO_LAST = frozenset(
    ("always", "never", "never ever", "should never", "from now on not", "from now on", "we always", "no longer",
     "convention", "ko always", "ko never", "ko from now on not", "ko from now on", "ko we always")
)  # fmt: skip


# Where a sentence may begin before the words that make it a claim.
_LEAD = r"""^(?:(?:please|pls|ok(?:ay)?|yes|no|nope|also|and|but|so|note|btw|by\ the\ way|remember|reminder
    |important|from\ now\ on|going\ forward|in\ (?:the\ )?future|next\ time|as\ a\ rule|in\ general|generally
    |(?:you|we)\ (?:should|must|need\ to|have\ to))[\s,:;!.-]+){0,4}"""

# Verbs of working habits: what may follow "always", "never" and their like.
_HABIT = r"""(?:use|run|write|add|put|keep|commit|push|merge|rebase|squash|amend|test|lint|format|check|verify|ask
    |confirm|answer|reply|respond|explain|create|make|name|import|export|prefer|include|follow|read|update|bump|sign
    |wrap|document|comment|install|edit|change|modify|touch|delete|remove|stash|force[- ]push
    |skip|mock|rely|depend|assume|pin|avoid|tell\ me|show\ me|let\ me|start\ (?:by|with)|work\ (?:in|on|from)
    |speak|talk|hard-?code|mention|branch|deploy|release|review)"""

# What marks a rule as meant for longer than this task.
_LASTING = (
    r"(?:from\ now\ on|going\ forward|in\ (?:the\ )?future|next\ time|as\ a\ rule|in\ general|every\ time|whenever)"
)

_PLACE = r"in\ (?:this|the|our)\ (?:repo(?:sitory)?|project|code\s?base|monorepo|team|workspace)"

RULES = (
    # "always use pnpm", "you should never force push"
    _rule("always", "preference", rf"{_LEAD}always\s+(?P<what>{_HABIT}\b.+)$", 1, 0.85),
    _rule("never", "preference", rf"{_LEAD}never\s+(?:ever\s+)?(?P<what>{_HABIT}\b.+)$", -1, 0.85),
    _rule("never ever", "preference", rf"{_LEAD}(?:don'?t|do\ not)\s+ever\s+(?P<what>{_HABIT}\b.+)$", -1, 0.85),
    # "X should never be updated", "full schema should not be updated ever"
    _rule(
        "should never",
        "preference",
        r"""^(?P<what>(?!(?:it|this|that|they|these|those|which|there|we|you|i)\b)[\w`'"./ -]{3,60}?\s
            (?:should|must|may)\s+(?:never\s+be\s+\w+|(?:not|never)\s+be\s+\w+\s+ever)\b.*)$""",
        0,
        0.75,
    ),
    # "from now on use …", "going forward, don't …"
    _rule(
        "from now on not",
        "preference",
        rf"^(?:please\s+)?{_LASTING}[\s,:]+(?:please\s+)?(?:don'?t|do\ not|never|stop)\s+(?P<what>\w.+)$",
        -1,
        0.85,
    ),
    _rule(
        "from now on",
        "preference",
        rf"""^(?:please\s+)?(?:from\ now\ on|going\ forward|in\ (?:the\ )?future|next\ time|as\ a\ rule)[\s,:]+
            (?:(?:please|always|you\ should|we\ should)\s+){{0,2}}(?P<what>{_HABIT}\b.+)$""",
        1,
        0.85,
    ),
    # "I prefer …", "I don't like …", "I hate …"
    _rule(
        "i prefer",
        "preference",
        r"""^(?:(?:and|but|so|also|no|yes|ok|actually|well)[\s,]+){0,2}(?:i|we)
            (?:\s(?:really|much|strongly))?
            (?:\s(?:generally|usually|always|typically|normally)|(?=.*\s(?:over|rather\ than|when\ you)\s))
            \s+prefer\s+(?P<what>(?!option|the\ (?:first|second|third|latter|former|other)|that\b|this\b|it\b).+)$""",
        1,
        0.8,
    ),
    _rule(
        "i dislike",
        "preference",
        r"^(?:(?:and|but|also)[\s,]+)?i\s+(?:(?:really\s+)?(?:don'?t|do\ not)\s+like|hate|dislike)\s+"
        r"(?:it\s+)?when\s+(?:you|agents|people|commits|tests|functions|comments)\s+(?P<what>(?!did\b|have\b)\w.+)$",
        -1,
        0.7,
    ),
    # "no, use X instead of Y"; "use X, not Y": a correction outlives its task only where it names tools.
    _rule(
        "use not",
        "preference",
        rf"""{_LEAD}use\s+(?P<what>[`'"]?[\w@./+#-]{{2,30}}[`'"]?)\s*,?\s+(?:instead\s+of|rather\s+than|(?:and\s+)?not|over)\s+
            (?P<not>[`'"]?[\w@./+#-]{{2,30}}[`'"]?)(?:(?P<rest>\s+(?:for|in|when|to)\s+(?!the\b|this\b|that\b).{{2,40}})|)[.!]?$""",
        1,
        0.7,
        answers=True,
    ),
    # "no longer use X", "we don't use X (any more)"
    _rule(
        "no longer",
        "fact",
        r"^(?:(?:and|but|so|also|because|since)[\s,]+)?(?:i|we)\s+no\s+longer\s+(?P<what>(?:use|need|support|have|want|run)\s+\S.+)$",
        -1,
        0.85,
    ),
    _rule(
        "we do not",
        "fact",
        r"""^(?:(?:and|but|so|also|no)[\s,]+){0,2}(?:here\s+)?we\s+(?:don'?t|do\ not|never)\s+
            (?P<what>(?:use|support|ship|commit|push|mock|allow|write|test|merge|squash|publish|deploy|gitignore|vendor|pin|cache|log)\s+(?!it\b|that\b|this\b|them\b|these\b|those\b)\S.+)$""",
        -1,
        0.7,
    ),
    # "we use X for Y", "we always …", "this project uses X"
    _rule(
        "we use",
        "fact",
        r"""^(?:(?:and|but|so|also|no|here|note|btw|\()[\s,]*){0,2}we\s+(?:(?:now|only|always|already|usually|explicitly)\s+)?use\s+
            (?P<what>(?!it\b|that\b|this\b|them\b|these\b|the\ same\b|a\b|an\b)
            \S+(?:\s+\S+){0,4}?\s+(?:for|to|as|in|with)\s+\S.+
            |[`'"]?[\w@./+#-]{2,30}[`'"]?[.!]?)$""",
        1,
        0.75,
    ),
    _rule(
        "we always",
        "fact",
        rf"^(?:(?:and|but|also)[\s,]+)?we\s+always\s+(?P<what>{_HABIT}\b.+)$",
        1,
        0.7,
    ),
    _rule(
        "project uses",
        "fact",
        r"""^(?:this|our|the)\s+(?:repo(?:sitory)?|project|code\s?base|monorepo|app|team|company)\s+
            (?P<what>(?:uses|is\s+(?:written|built|deployed|hosted|tested|managed|published)|runs\s+on|requires|targets|follows)\s+\S.+)$""",
        1,
        0.8,
    ),
    _rule(
        "in this repo",
        "fact",
        rf"""^{_PLACE}[\s,]+(?:we|you\s+should|always|never|don'?t|do\ not|please|use)\s*(?P<what>.+)$""",
        0,
        0.8,
    ),
    _rule(
        "convention",
        "fact",
        r"^(?:our|the|my)\s+(?:convention|rule|policy|practice)\s+is\s+(?:that\s+|to\s+)?(?P<what>.+)$",
        1,
        0.8,
    ),
    # What holds beyond the task, by its own words: "where possible", a reason given, a kind of name.
    _rule(
        "where possible",
        "preference",
        rf"{_LEAD}(?P<skip>.{{0,120}}[,;]\s+)?(?P<what>{_HABIT}\s+[^,;]{{3,80}}?\s(?:where|when|if)(?:ver)?\s+possible)\b.*$",
        1,
        0.65,
    ),
    _rule(
        "do not because",
        "preference",
        rf"""{_LEAD}(?:don'?t|do\ not)\s+(?P<what>{_HABIT}\s+
            (?!it\b|that\b|this\b|them\b|the\b|any\b|anything\b)\S.{{3,80}}?)
            \s+(?:as|because|since)\s+(?:that|it|they|this)\s+\w.+$""",
        -1,
        0.7,
    ),
    # Who the user is.
    _rule(
        "i am",
        "profile",
        r"""^(?:hi|hello|hey|btw|fyi|note|and|also)?[\s,!]*(?:i\s+am|i'm|im)\s+(?P<what>(?:an?|the)\s+(?:[\w+#/.-]+\s+){0,4}
            (?:engineer|developer|dev|designer|student|researcher|scientist|analyst|manager|architect|maintainer|author|founder
            |lead|cto|ceo|beginner|newbie|sre|writer|teacher|professor|consultant|freelancer|programmer)
            \b(?!.*\b(?:but|can'?t|cannot|see|get|logged)\b).*)$""",
        0,
        0.85,
        True,
    ),
    # What is wanted of every such thing, against what is there now: "literal expectations instead of Contains checks".
    _rule(
        "rather than",
        "preference",
        r"""^(?:(?:and|also|so|ok|great|alright)[\s,]+)*(?=.*\b(?:every|all|any|always|generally|everywhere)\b)
            (?P<skip>for\s+(?:every|all|any)\s+[^,]{2,60}?,?\s+)?
            (?P<what>(?:i'?d|i\s+would|we'?d)\s+(?:rather\s+|also\s+)?(?:like|prefer|love)\s+(?:to\s+(?:see|have|use)\s+)?
            (?!to\b|it\b|this\b|that\b|you\b|us\b)\S.{3,140}?\s(?:instead\s+of|rather\s+than|over)\s+\S.{2,80})$""",
        1,
        0.7,
    ),
    _rule(
        "i use",
        "preference",
        r"""^(?:(?:and|but|also|btw|fyi|note)[\s,]+)*i\s+(?:only|always|mostly|mainly|usually|normally|generally)\s+(?:use|write|work\s+(?:in|with))\s+
            (?P<what>(?!it\b|this\b|that\b|the\b|these\b|those\b)\S.{1,80})$""",
        1,
        0.75,
        True,
    ),
    _rule(
        "ko do not use",
        "preference",
        r"^(?:앞으로\s*|웬만하면\s*)?(?P<what>[a-z0-9@./+#_-]{2,30})(?:은|는|을|를)?\s*(?:절대\s*)?(?:쓰|사용하)지\s*(?:마|마라|마세요|말아|말아줘|말아주세요|말\s*것)[.!]?$",
        -1,
        0.75,
    ),
    _rule(
        "ko instead",
        "preference",
        r"^(?:아니\s*,?\s*)?[\w@./+#-]{2,30}\s*(?:말고|대신(?:에)?)\s*(?P<what>[a-z0-9@./+#_-]{2,30})(?:을|를|로|으로)?\s*(?:써|쓰자|사용해|사용하자)\s*(?:줘|주세요|요)?[.!]?$",
        1,
        0.7,
    ),
    # Korean. "항상 … 써줘", "절대 … 하지 마", "앞으로는 …", "우리는 …를 사용한다", "저는 … 개발자입니다".
    _rule(
        "ko always",
        "preference",
        r"^(?:앞으로(?:는|도)?\s*)?(?:항상|언제나|무조건|반드시)\s+(?P<what>.+?(?:해|써|사용해|작성해|돌려|달아|붙여|유지해|지켜|확인해|답해|대답해|설명해|실행해)\s*(?:줘|주세요|라|요|야\s*해|야\s*합니다)?)[.!]?$",
        1,
        0.85,
    ),
    _rule(
        "ko we always",
        "fact",
        r"^(?:우리(?:는|\s*팀은)?|저희(?:는|\s*팀은)?)\s*(?:항상|언제나|무조건|반드시)\s+(?P<what>\S.{3,80}?)[.!]?$",
        1,
        0.85,
    ),
    _rule(
        "ko never",
        "preference",
        r"^(?:앞으로(?:는|도)?\s*)?(?:절대로?|다시는|웬만하면)\s+(?P<what>.+?)(?:하)?지\s*(?:마|마라|마세요|말아|말아줘|말아주세요|말\s*것|않기)[.!]?$",
        -1,
        0.85,
    ),
    _rule(
        "ko from now on not",
        "preference",
        r"^(?:앞으로(?:는)?|다음부터(?:는)?|이제부터(?:는)?)\s+(?P<what>.+?)(?:하)?지\s*(?:마|마라|마세요|말아|말아줘|말아주세요|말\s*것)[.!]?$",
        -1,
        0.85,
    ),
    _rule(
        "ko from now on",
        "preference",
        r"^(?:앞으로(?:는)?|다음부터(?:는)?|이제부터(?:는)?)\s+(?P<what>.+?(?:해|써|줘|주세요|세요))[.!]?$",
        1,
        0.8,
    ),
    _rule(
        "ko prefer",
        "preference",
        r"^(?:나는|난|저는|전)\s+(?P<what>.+?)(?:을|를|이|가)?\s*(?:선호해요?|선호합니다|더\s*좋아해요?|더\s*좋아합니다)[.!]?$",
        1,
        0.8,
    ),
    _rule(
        "ko we use",
        "fact",
        r"^(?:우리(?:는|\s*팀은|\s*프로젝트는)?|저희(?:는|\s*팀은|\s*프로젝트는)?|이\s*(?:프로젝트|저장소|레포)(?:는|에서는|은))\s+(?P<what>.+?(?:사용해요?|사용합니다|사용한다|써요?|씁니다|쓴다|사용\s*중이야|사용\s*중입니다))[.!]?$",
        1,
        0.8,
    ),
    _rule(
        "ko i am",
        "profile",
        r"^(?:나는|난|저는|전)\s+(?P<what>.+?(?:개발자|엔지니어|디자이너|학생|연구원|연구자|기획자|매니저|관리자|초보))(?:야|다|이야|입니다|예요|이에요|에요)?[.!]?$",
        0,
        0.85,
        True,
    ),
    _rule(
        "ko answer in",
        "preference",
        r"^(?:앞으로\s*|항상\s*|모든\s*)?(?:답변?은|대답은|설명은)?\s*(?P<what>(?:한국어|한글|영어|일본어)로\s*(?:답변?|대답|설명|말|작성|응답)(?:해)?)\s*(?:줘|주세요|해줘|해주세요|하세요|요)?[.!]?$",
        1,
        0.85,
        True,
    ),
    _rule(
        "ko answers are in",
        "preference",
        r"^(?:앞으로\s*|항상\s*)?(?:모든\s*)?(?:답변?|대답|설명)은\s*(?P<what>(?:한국어|한글|영어|일본어)로)\s*(?:해\s*)?(?:줘|주세요)[.!]?$",
        1,
        0.85,
        True,
    ),
    _rule(
        "answer in",
        "preference",
        r"^(?:please\s+)?(?:always\s+)?(?P<what>(?:answer|reply|respond|speak|talk|write)\s+(?:to\s+me\s+)?in\s+(?:english|korean|japanese|german|french|spanish|chinese|hindi|portuguese))[.!]?$",
        1,
        0.85,
        True,
    ),
)
