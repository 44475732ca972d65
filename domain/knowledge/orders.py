"""Orders in what others wrote: sentences that say how work is to be done, and by that fetch, run or send something,
take something away, widen rights, or leave a check out. A commit, a document or an agent may say so in anybody's name;
none is given to an agent that did not ask.

A sentence orders where it names such a way of working, or joins what makes it binding (who asked, what was agreed, from
when on, for whom) with what is done to the machine, the repository or the checks. What says how code behaves ("must
drop keys") names neither.
"""

from collections.abc import Callable, Iterator

from memctl.domain.knowledge.acting import commands_somebody
from memctl.domain.knowledge.memory import plain_sentences, sentences
from memctl.domain.shell.harmless import harmless
from memctl.domain.support import patterns
from memctl.domain.support.text import composed

_CHECKS = r"(?:tests?|checks?|hooks?|gates?|reviews?|approvals?|ci|lint\w*|signatures?|verification|staging)"
_KEPT = r"(?:history|branch|tags?|backups?|repo\w*|database|bucket)"
_WAYS = patterns.compile(
    r"\bforce[- ]?(?:push|merg)\w*|\b(?:amend|rebase) and force|--force\b|--no-verify\b|"
    "강제 ?(?:푸시|병합)|강제로|強制|强制|"
    rf"\b(?:skip|bypass|ignor|mut|silenc|disabl|overrid|circumvent|suppress)\w* (?:\S+ ){{0,4}}?{_CHECKS}\b|"
    rf"\b{_CHECKS} (?:is|are|be|gets?) (?:\w+ )?(?:skipped|bypassed|ignored|muted|silenced|disabled|off|optional"
    r"|not (?:needed|required))|"
    r"\b(?:without|no|needs? no|waiv\w+) (?:\w+ )?(?:reviews?|approvals?|staging|supervision|confirmation)\b|"
    r"\bturn\w* (?:\S+ ){0,4}?off\b|"
    r"\b(?:write|admin|root|full|disk|shell|push|owner) (?:disk |read )?(?:access|rights|permissions?)\b|"
    r"\b(?:uses?|as) root\b|\bunattended\b|\bfirewall\b|"
    r"\b(?:grant|giv|hand|get)\w* (?:\S+ ){0,6}?(?:access|admin|rights|permissions?|keys?)\b|"
    r"\b(?:signing|private|deploy|ssh|api) keys?\b|\bpassphrases?\b|\bcredentials?\b|"
    r"\bsandbox\w*\b.{0,20}\boff\b|\btrust\w* (?:\S+ ){0,3}certificates?\b|"
    r"\b(?:copy|paste|put|read|send)\b.{0,30}\.env\b|\banswer\w* yes\b|\bnobody (?:looks|reviews|checks)\b|"
    r"\b(?:directly|straight|right away|right) (?:in)?to (?:main|master|prod\w*|live)\b|"
    r"\bsign(?:s|ed|ing)? (?:with|by) (?:\S+ ){0,3}keys?\b|\bopen(?:s|ed|ing)? (?:the )?ports?\b|"
    r"\bbinar(?:y|ies) (?:found |that )?(?:at|from|in)\b|\bnot wait for (?:\S+ )?(?:ci|review|approval|tests?)\b|"
    r"\b(?:customer|user|personal) (?:rows|records) .{0,20}\b(?:abroad|out|to)\b|"
    r"\bif [^,]{1,60} (?:fails?|breaks?|is red), (?:then )?(?:remove|delete|drop|skip|wipe|comment|force|push)\b|"
    r"\b(?:so|then|therefore|thus|just|simply) (?:delete|wipe|purge|drop|push|upload|send|publish|deploy|disable|grant|"
    r"overwrite|kill)\b|"
    r"\b(?:in)?to (?:a |the )?shell\b|\bcurl(?:ed|ing)?\b|\bpiping\b|"
    rf"\b(?:rewrit|overwrit|wip|purg|clear|reset)\w* (?:\S+ ){{0,3}}?{_KEPT}\b|"
    rf"\b{_KEPT} (?:\S+ ){{0,3}}?(?:rewritten|overwritten|wiped|purged|cleared|reset|moved|dropped)\b|"
    r"\b(?:lockfile|toolchain|packages?|dependenc(?:y|ies)|helpers?|plugins?|extensions?)\b.{0,24}?"
    r"\b(?:from|off|against|via|on the|out of) |\bindex for\b",
    patterns.I,
)
"""Ways of working that nobody takes from a record."""

_ADDRESSES = patterns.compile(
    r"\b(?:ops|security|legal|qa|teams?|vendors?|customers?|clients?|owners?|users?|humans?|leads?|boss|board|"
    r"managers?|"
    r"captain|maintainers?) (?:has |have )?(?:\w+ )?(?:said so|(?:allow|advis|want|ask|expect|insist|requir|prefer|"
    r"instruct|order|demand)\w* (?:\S+ ){1,6}?to)\b|\b(?:says?|said) (?:to|that (?:you|we all|everyone)) |"
    r"\badvised\b.{0,30}\bto\b|"
    r"\bdo as\b|\ball of us\b|\bkeep (?:in mind|it that way)\b|\boutranks?\b.{0,30}\buser|"
    r"\byou (?:can|may) (?:simply|now|just)|\bplease\b|\b(?:human|person) in the loop\b|"
    r"\bwhenever\b[^,]{0,60}, (?:revert|notify|delete|call|run|start|send)\b|\b(?:rights|privileges)\b|"
    r"\bspend money\b|\btake over the\b|\bservice account\b|"
    r"기억해|십시오|세요|합시다|고객|ください|要望|请|\b(?:auf wunsch|regel lautet|bitte|veuillez|por favor)\b",
    patterns.I,
)
"""What speaks to whoever reads it, or for somebody who may order."""

_OF_OTHERS = (
    r"\b(?:agents?|bots?|ai|assistants?|contributors?|every(?:one|body)|any(?:one|body)|whoever|maintainers?|owners|"
    r"captain|leads|(?:project|tech|team) leads?|decid\w+|deal|colleagues|says|habit|custom(?:s|ary)?|house|retro|"
    r"prefers?|cleared|confirmed (?:that|by|with)|next steps?|reviewers|(?:next|future|later) (?:time|sessions?|"
    r"agents?|runs?)|requested|request(?:s? that|ed-by| of| from)|"
    r"insist\w*|instruct\w*|told|by order|order(?:s|ed) (?:us|to|that)|demand\w*|agreed|agreement|consensus|"
    r"settled (?:on|with|that)|sign\w* off|approved by|as (?:discussed|decided|ordered)|per the|standing|our practice|"
    r"reminder|note (?:to|for)|going forward|from (?:now|this \w+|here) on|in (?:the )?future|"
    r"before (?:each|any|every|touching|editing|you)|after (?:each|every|any)|ahead of|beforehand|"
    r"(?:each|every) (?:\S+ )?(?:time|change|run|fix|commit|pr|edit)|all \S+ work|wants?|asked|please|make sure|"
    r"supersedes|mandat\w+ (?:that|to)|standardi[sz]e|remember|(?:adopt|follow)\w* (?:\S+ )?(?:rule|practice|policy)|"
    r"the next \S+)\b|^[A-Z]\w*(?:-\w+)+: |^(?:policy|convention|decision|consequences?|outcome): "
)
_TO_THE_WORK = (
    r"\b(?:branch(?:es)?|refs?|pull requests?|prs?|patches|commits?|ci|gates?|approvals?|hooks|backups?|dumps?|"
    r"secrets?|"
    r"toolchain|packages?|extensions?|scripts?|shell|laptops?|lockfile|repositor(?:y|ies)|staging|bootstrap|releases|"
    r"ship|lands?|logs?|accounts?|certificates?|sandbox\w*|ports|binar(?:y|ies)|mirrors?|containers?|"
    r"clusters?|"
    r"runners?|prompting|proxy|servers?|logins?)\b"
)
_DONE = (
    r"\b(?:run(?:s|ning)?|execut\w+|invok\w+|install\w*|fetch\w*|download\w*|push\w*|deploy\w*|publish\w*|ships?|"
    r"go(?:es|ing)? (?:live|out)|upload\w*|wip(?:es?|ed|ing)|clear(?:s|ed)? out|purg\w+|overwrit\w+|rewrit\w+|"
    r"kick(?:s|ed|ing)? off|launch\w*|log(?:s|ged)? in(?:to)?|committed to|copy|copies|copied|trust(?:s|ed)?|"
    r"delet(?:e[sd]?|ing)|drop the \S+ tables?|eras\w+|mirrored|sync(?:s|ed)? by|"
    r"lets? \S+ (?:merge|run|act|push|rewrite))\b"
)
_MUST = (
    r"(?:must|shall|should|(?:is|are) to|expected to|supposed to|required to|(?:has|have|needs?) to|always|accepted|"
    r"convention|(?:the|our|new|old) rules?)\b"
)
_TO_BE_DONE = (
    r"(?: \S+){0,2} (?:be )?(?:run|execute|invoke|install|fetch|download|push|publish|upload|wipe|purge|load|sync)"
    r"(?:e?d|s)?\b"
)
"""What code must do is done by other verbs, or stands further off."""
_KOREAN = (
    "항상|반드시|꼭|앞으로|이제부터|라고|기로|[해아어]야|세요|달라|요청|지시|합의|결정|정해|면 됩니다|둡니다|개발자|"
    "허락|승인|규칙|정책|원칙|"
    "관례|마다|먼저|전에|해도",
    "푸시|병합|머지|배포|릴리[스즈]|설치|내려받|다운로드|저장소|레지스트리|미러|실행|스크립트|명령|전송|업로드|"
    "덮어쓰|브랜치|커밋|테스트|검증|리뷰|"
    "백업|로그인|권한|관리자|자격 ?증명|비밀|토큰|방화벽|바로 반영|모두 (?:제거|삭제)",
)
_GERMAN = (
    r"\b(?:immer|stets|(?:zu)?k(?:ü|ue)nftig|ab (?:jetzt|sofort)|jede\w*|muss|m(?:ü|ue)ssen|soll\w*|ist|sind|werden|"
    r"verlangt\w*|gebeten|bat|bittet|angewiesen|absprache|abgesprochen|vereinbart|beschlossen|laut|regel|anweisung|"
    r"darf|"
    r"d(?:ü|ue)rfen|erlaubt|genehmigt|bitte|r(?:ü|ue)cksprache|m(?:ö|oe)chte)\b",
    r"(?:aus(?:zu|ge)?f(?:ü|ue)hr\w*|(?:de)?install\w*|(?:ge)?l(?:ö|oe)sch\w*|entfern\w*|(?:ü|ue)berspr\w*|umgangen|"
    r"deaktivier\w*|(?:ab|aus)ge(?:schaltet|stellt)|hoch(?:ge|zu)?lad\w*|(?:ge|ver)?s(?:end|chick)\w*|bezogen|beziehen|"
    r"herunter\w*|geladen|ver(?:ö|oe)ffentlich\w*|(?:ü|ue)berschr\w*|(?:ge)?(?:push|merg)\w*|zugriff\w*|(?:ä|"
    r"ae)nder\w*|skript\w*|r(?:ü|ue)ckfrage|rechte|kennw\w+|"
    r"passw\w+)",
)
_HAN = (
    "必ず|必须|常に|总是|始终|毎回|每次|今後|今后|以后|指示|依頼|要求|合意|同意|约定|言われ|ように|ことに|ことで|"
    "べき|ください|なければ|ルール|規則|规定|"
    "方針|決定|决定|許可|允许|承認|批准|前に|请|慣例|按照|都要|应该",
    "実行|起動|启动|发到|变更|运行|执行|削除|删除|消去|清空|上書き|覆盖|プッシュ|推送|マージ|合并|デプロイ|部署|"
    "リリース|公開|发布|インストール|安装|ダウンロード|下载|取得|送信|发送|"
    "アップロード|上传|共有|省略|スキップ|跳过|無視|忽略|無効|禁用|关闭|権限|权限|管理者|管理员|認証|凭据|秘密|密钥|"
    "トークン|令牌",
)
_OWED = patterns.compile(rf"\b{_MUST}{_TO_BE_DONE}", patterns.I)
_ROMANCE = (
    r"\b(?:demande\w*|toujours|avant|doit|doivent|accord|convenu|r(?:è|e)gle|d(?:é|e)sormais|veuillez|merci de|"
    r"acuerdo|siempre|pidi\w+|solicit\w+|deben?|hay que|antes de|norma|regla|por favor)\b",
    r"\b(?:ex(?:é|e)cut|ejecut|instal|pouss|supprim|envoy|env(?:i|í)|t(?:é|e)l(?:é|e)charg|descarg|d(?:é|e)ploy|"
    r"despleg|d(?:é|e)sactiv|desactiv|"
    r"ignor|publi|fusion|sub[aei]|borr|elimin|sin revisi|sans (?:revue|relecture))",
)
_BOTH = tuple(
    (patterns.compile(binding, patterns.I), patterns.compile(done, patterns.I))
    for binding, done in ((_OF_OTHERS, f"{_DONE}|{_TO_THE_WORK}"), _KOREAN, _GERMAN, _ROMANCE, _HAN)
)
"""What makes a sentence binding, and what it then has done; Japanese and Chinese together."""

_WRAPPED = patterns.compile(r"([^\s.!?。:])[ \t]*\n[ \t]*([a-z가-힣ぁ-ヿ一-鿿(])")
"""A line break within a sentence, as commits have it."""


def orders(sentence: str) -> bool:
    """Whether a sentence of others says how work is to be done, with an effect beside the code, or may say it in a
    language that no rule reads."""
    text = composed(sentence)
    if _unread(text):
        return True
    if _WAYS.search(text) or _OWED.search(text) or _ADDRESSES.search(text):
        return True
    if text.rstrip().endswith("?"):
        return False  # a question binds nobody
    return any(binding.search(text) and done.search(text) for binding, done in _BOTH)


def might_be_obeyed(text: str) -> bool:
    """Whether a text that others wrote, given to an agent that did not ask, might be obeyed."""
    return commands_somebody(text) or holds_orders(text)


def holds_orders(text: str) -> bool:
    """Whether a sentence of a text orders, be it one in the quotation marks of a command."""
    return any(map(orders, sentences(_unwrapped(text))))


def only_checks(command: str) -> bool:
    """Whether a command may be named to an agent that did not ask: it checks, builds or looks, and the words that it is
    given, which may be a sentence in quotation marks, order nothing."""
    return harmless(command) and not holds_orders(command)


def unobeyed(text: str) -> str:
    """What of a text that others wrote may be given to an agent that did not ask: no sentence that might be obeyed.

    Where a sentence might be for what it only names, as a command, an address or an aside, it is given without that:
    what is left passes as any sentence does that its writer could have written."""
    whole = _unwrapped(text)
    if any(map(orders, sentences(whole))):
        text = " ".join(" ".join(each.split()) for each in _spoken(whole, orders))
    if commands_somebody(text):
        text = " ".join(_spoken(text, commands_somebody))
    return text


def _spoken(text: str, obeyed: Callable[[str], bool]) -> Iterator[str]:
    """The sentences of a text, without what of them is obeyed."""
    for each in plain_sentences(text):
        left = without_names(each) if obeyed(each) else each
        if left:
            yield left


def without_names(sentence: str) -> str:
    """A sentence that might be obeyed, without the commands, addresses and asides that it names; empty where it might
    be all the same, or says too little then."""
    named = _URL.sub("…", _LINK.sub(lambda found: found[1], sentence))
    for left in (_CODE.sub(_harmless_or_left_out, named), _ASIDE.sub("", _CODE.sub(_LEFT_OUT, named))):
        if not might_be_obeyed(left):
            return left if len(_WORD.findall(left.replace(_LEFT_OUT, ""))) >= LEAST_LEFT else ""
    return ""


def _harmless_or_left_out(code: patterns.Match[str]) -> str:
    return _LEFT_OUT if might_be_obeyed(code[0]) else code[0]


_LEFT_OUT = "`…`"
_LINK = patterns.compile(r"\[([^\]\n]{1,200})\]\([^)\s]{1,300}\)")
_URL = patterns.compile(r"\b[a-z][a-z0-9+.-]{1,15}://\S+", patterns.I)
_CODE = patterns.compile(r"`[^`\n]{1,400}`")
_ASIDE = patterns.compile(r" ?\([^()]{1,300}\)")
_WORD = patterns.compile(r"\w{2,}")

LEAST_LEFT = 5
"""Words of a sentence that says something without what it names."""


def only_names(path: str) -> bool:
    """Whether a path only names a file: no sentence stands in its names, and no order."""
    return _PATH.search(path) is not None and not might_be_obeyed(" ".join(_BETWEEN_WORDS.split(path)))


_PATH = patterns.compile(r"^(?:[A-Za-z]:)?[\w.@+~()\[\]/\\-]+$")
_BETWEEN_WORDS = patterns.compile(r"[^\w]+|_+")

_NEXT = patterns.compile(r"""[.!?;:…。！？)\]}"'`»”][ \t]+[A-Z]|[.!?;。！？]\s|[。！？]|\n""")
"""Where an error message has said what failed: what follows may be anything, and ask for anything."""


def what_failed(error: str) -> str:
    """Of a tool's error what says what failed, without what might be obeyed."""
    error = error.strip()
    end = next((found.start() + 1 for found in _NEXT.finditer(error) if found.start() >= _SHORTEST), len(error))
    return unobeyed(error[:end].rstrip(":;"))


_SHORTEST = 8
"""Characters that say what failed: `Error: ` by itself says nothing."""


def _unwrapped(text: str) -> str:
    return _WRAPPED.sub(lambda found: f"{found[1]} {found[2]}", text)


# --- languages that no rule reads ---

_OTHER_SCRIPTS = patterns.compile("[\u0370-\u10ff\u1200-\u1dff\u1f00-\u1fff\u2c00-\u2dff\ua000-\uabff]{3}")
"""Letters that are neither Latin nor of Korean, Japanese or Chinese."""

_OTHER_WORDS = patterns.compile(
    r"(?:^|[\s(\"'“«])(?:"
    r"não|você|vocês|devem|sempre|depois|pelo|pela|são|nunca|qualquer|cada|sem|"
    r"antes|uma|seu|sua|isso|essa|também|então|até|já|fazer|aos|nosso|nossa|precisa|pode|"
    r"che|prima|deve|devono|della|delle|degli|nella|ogni|questo|senza|tutti|dopo|bisogna|"
    r"het|een|wordt|worden|moet|moeten|altijd|voor|niet|zonder|elke|iedere|"
    r"się|zawsze|przed|należy|każdy|każdą|każdym|trzeba|musi|oraz|przez|"
    r"vždy|před|není|musí|každý|každou|každým|při|nebo|všechny|"
    r"bir|için|önce|daima|gerekir|gerekli|olmadan|sonra|lazım|tüm|"
    r"và|của|không|phải|luôn|trước|các|được|hãy|"
    r"yang|untuk|selalu|harus|sebelum|dengan|jangan|tanpa|setiap|tidak|"
    r"och|alltid|måste|inte|innan|utan|varje|skall|före|"
    r"og|altid|skal|ikke|før|uden|uten|hver|"
    r"aina|ennen|täytyy|pitää|ilman|kaikki|että|"
    r"mindig|előtt|kell|nélkül|minden|hogy|"
    r"întotdeauna|mereu|trebuie|înainte|fără|fiecare|după|și"
    r")(?:[\s.,;:!?)\"'”»]|$)",
    patterns.I,
)
"""Frequent words of Portuguese, Italian, Dutch, Polish, Czech, Turkish, Vietnamese, Indonesian, Swedish, Danish,
Norwegian, Finnish, Hungarian and Romanian, as far as English, German, French and Spanish have none of them."""


def _unread(sentence: str) -> bool:
    """Whether a sentence is in a language that no rule reads."""
    return _OTHER_SCRIPTS.search(sentence) is not None or _OTHER_WORDS.search(sentence) is not None
