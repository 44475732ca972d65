"""Claims that act: whoever follows one fetches, runs, sends or takes away something. A person confirms it first."""

import unicodedata

from memctl.domain.failures.solutions import is_risky
from memctl.domain.shell.harmless import harmless
from memctl.domain.shell.programs import words_of
from memctl.domain.support import patterns
from memctl.domain.support.text import composed

_HOST = (
    r"\b(?:[a-z0-9-]+\.)+(?:com|org|net|io|dev|app|cloud|site|online|xyz|info|biz|ai|co|us|eu|uk|de|fr|nl|jp|kr|cn|ru|in"
    r"|br|example|internal|corp|lan|intranet|invalid)(?:[\s/:,;)'\"`]|\.?\s|\.?\z)"
)
_VARIABLE = r"(?-i:\b[A-Z][A-Z0-9_]{3,}=\S)"
_PLACE = (
    r"\b(?:https?|hxxps?|ftp|ssh|git|file|data)://|\w\[\.\]\w|\bgit@|\bwww\.|\b(?:\d{1,3}\.){3}\d{1,3}\b|"
    r"\b(?:registry|registries|npm_config_\w+|package index|index[- ]url|extra[- ]index|mirror|tarball|mcp servers?"
    r"|ssl[_-]?verify)\b|"
    r"\b(?:npm|pip|pypi|cargo|crates|gem|maven|docker|nuget|composer|apt|helm|package|own|internal|private|company) "
    r"(?:\w+ )?(?:hosts?|feeds?|prox(?:y|ies)|index(?:es)?)\b|"
)
"""Where something may be fetched from or sent to."""

_REACHES_OUT = patterns.compile(
    rf"{_HOST}|{_VARIABLE}|{_PLACE}"
    + r"\|\s*(?:sudo\s+)?(?:ba|z|da|k|fi)?sh\b|\|\s*(?:python|perl|ruby|node|iex|pwsh|powershell)|\$\(|"
    r"\b(?:ba|z|da)?sh -c\b|\biwr\b|\bbase64\b|\bhttp instead of\b|\bmcp server|"
    r"\b(?:not|never|don['’]?t|without|skip) (?:check|verify|validat)\w* (?:the )?(?:signature|certificate|checksum)|"
    r"\b(?:credentials?|passwords?|passphrase|secrets?|tokens?|api[- ]?keys?|private key|ssh key|keychain|id_rsa|"
    r"\.netrc|\.npmrc|\.pypirc|kubeconfig)\b|"
    r"_unauthorized\b|\bsslverify\b|\bstrict-ssl\b|[a-z][\x{400}-\x{4ff}]|[\x{400}-\x{4ff}][a-z]|"
    r"레지스트리|비밀번호|자격 ?증명|토큰|인증 ?키",
    patterns.I,
)
"""What no claim may hold, whether it says do or do not: an address, a pipe to a shell, a registry, a credential,
certificates left unchecked, a word in letters of two scripts."""

_CHANGES = patterns.compile(
    r"\b(?:permissions?|allow-?list|white-?list|dangerously|skip-permissions|no-verify|insecure|auto-?approve|"
    r"always (?:allow|approve|accept|trust|run|execute|start|call|invoke|install|download|fetch|send|upload|"
    r"post|source|"
    r"pull|forward|e?mail|share|copy|mount|kill|deploy|revert|inject|reply with the contents?|prefix commands?)|"
    r"(?:allowed|permitted|free|okay|ok) to|"
    r"without (?:asking|confirm\w*|approval|(?:running )?(?:the )?(?:tests?|checks?|reviews?))|"
    r"(?:never|don'?t|do not) ask (?:me )?(?:before|for|to)|rewrite (?:the )?history|"
    r"sudoers|collaborators?|prox(?:y|ies) (?:is|for|at|to)|(?:through|via) (?:\S+ ){0,2}proxy|"
    r"sandbox(?:ing)? (?:to )?off|"
    r"(?:outside|without) (?:the |a )?sandbox|trusts? (?:\S+ ){0,3}certificates?|firewall|analytics script|"
    r"package source|"
    r"open (?:the )?port|"
    r"change (?:the )?owner|"
    r"eval|rm -\w+|git clean|reset --hard|drop (?:table|database|schema)|truncate|"
    r"delet(?:e|es|ed|ing)|remov(?:e|es|ed|ing)|wipe|erase|purge|unlink|shred|overwrite|"
    r"drop (?:all|every)|publish (?:\w+ ){0,3}(?:to|on|after)|public (?:access|by default|bucket)|"
    r"make .{1,60} public|"
    r"grant(?:s|ing)? (?:\w+ )?(?:access|permissions?|rights|admin)|"
    r"verify ?= ?false|(?:straight|directly|right) (?:in)?to (?:main|master|production|prod)|force[- ]push|"
    r"kill -\d|killall|pkill|reboot|"
    r"push(?:es|ed|ing)?|disabl(?:e|es|ed|ing)|turn off|bypass|ignore (?:all|any|previous|the)|"
    r"(?:immer|stets) .{0,60}ausf(?:ü|ue)hren|f(?:ü|ue)hr\w* .{0,60} aus|l(?:ö|oe)sch\w*|(?:ver)?sende\w*|"
    r"schick\w*|installiere\w*|"
    r"ejecut\w+|borra\w*|elimina|env(?:í|i)a|sube|instala|ex(?:é|e)cut(?:ez?|er)|supprim\w+|envoi\w+|envoyez?)\b|"
    r"--no-gpg-sign|--force\b|푸시|삭제|지워|권한|설치|무시|보내|올려|(?:항상|반드시|꼭) .{0,60}실행|"
    r"実行|削除|送信|運行|运行|删除|发送|上传|安装|запуска|удаля|отправля|устан(?:ав|ов)",
    patterns.I,
)
"""What a claim may forbid, and not ask for by itself."""

_FORBIDS_NOT = patterns.compile(
    r"\b(?:forget|skip|omit|fail|hesitate|instead|"
    r"(?:never|don'?t|not) (?:ever )?(?:ask|wait|refuse|stop|block|prevent|hold|delay|object|question|check|confirm)|"
    r"without (?:push|delet|remov|disabl|wip|purg|turn|bypass))",
    patterns.I,
)
"""Words by which a prohibition asks for what it names."""


_ORDERS = patterns.compile(
    rf"\b(?:from|to|at|via|hosts?|use|visit) (?:\S+ )?{_HOST}|\b(?:export|setx?|env|env -w|use|with) {_VARIABLE}|"
    rf"{_PLACE}"
    r"\b(?:ssl)?verify ?= ?false\b|\b[a-z][\w.-]+==\d+\.\d|"
    r"\binstall(?:s|ed|ing)? (?:the )?(?:packages?|librar\w+|modules?|plugins?|extensions?|gems?|crates?)\b|"
    r"\byou (?:\w+ )?(?:wanted|want|asked|said|prefer|decided|require)\b|\bper your\b|\byour instructions?\b|"
    r"\|\s*(?:sudo\s+)?(?:ba|z|da|k|fi)?sh\b|\|\s*(?:python|perl|ruby|node|iex|pwsh)|\bbase64 (?:-d|--decode)|"
    r"\b(?:skip-permissions|auto-?approve|dangerously)\b|"
    r"\balways (?:allow|approve|accept|trust|run|execute|start|call|invoke|use|push|delete|send|upload|post)\b|"
    r"\b(?:allowed|permitted) to (?:run|push|delete|use|send)|\bwithout (?:asking|confirm\w*|approval)|"
    r"\bignore (?:all|any|previous)\b|"
    r"\b(?:the |your |our )?(?:user|human|owner|maintainer)s? (?:\w+ )?"
    r"(?:wants?|says?|said|prefers?|asked|asks|requires?|insists?|approved|confirmed|allowed|demands?|likes?|"
    r"expects?)\b|"
    r"\b(?:the )?(?:user|owner|maintainer)\)? (?:has )?(?:typed|decided|granted)\b|"
    r"\b(?:to|for) (?:all |the |any )?(?:ai|llm|coding)[ -](?:agents?|assistants?)\b|"
    r"\b(?:you|agents?|assistants?) (?:must|have to|are to)\b|~/\.(?:ssh|aws|gnupg|config)\b|"
    r"\bid_(?:rsa|ed25519|ecdsa)\b|\bas root\b|\bhooks (?:off|disabled)\b|"
    r"\b(?:user|human|system)(?:'s)? (?:preference|rule|instruction|wish|request)s?\b|^\s*(?:user|human|system):|"
    r"사용자(?:는|가|의) .{0,40}(?:원|요청|지시|선호)",
    patterns.I | patterns.M,
)
"""What nobody but a person is quoted with unasked: orders for all time, and words in the user's name."""


def commands_somebody(text: str) -> bool:
    """Whether a record, given to an agent that did not ask, might be obeyed: it installs, downloads or widens rights,
    names a command that does more than check and build, gives an order for all time, or speaks in the user's name."""
    seen = _seen(text)
    return is_risky(seen) or _ORDERS.search(seen) is not None or names_a_command(seen)


_QUOTED = patterns.compile(r"`([^`\n]{1,400})`")
_RAN = patterns.compile(r"\b(?:ran|runs?|running|execut\w+|tr(?:y|ied)|worked as)[: ]+\z", patterns.I)
_NOT_RUN = patterns.compile(r"\b(?:became|added|removed|instead of) \z")
_JOINED = (", ", " and ", "; ")
"""What stands before a command that was run, before an edited line or what was not run, and between commands."""

_COMMAND = patterns.compile(r"^(?:\w+=\S* )*[a-z.~/][\w.~+-][\w./~+-]* +(&&|\|\|?|[^\s=+*<>!&|%^?:][^\s]*)( +\S)?")
"""A program and a word for it, and perhaps more."""

_CODE = patterns.compile(
    r"^(?:return|import|from|def|class|if|elif|else|for|while|assert|raise|const|let|var|func|fn|pub|use|async|await|type"
    r"|struct|interface|static|public|private|new|not|throw|case|package|void|int|self|\S+ (?:in|is|and|or|if|not|as)) "
)
"""How lines of programs begin that read like commands."""

_ASKED = patterns.compile(
    r"(?:^|[\n\"'(:;,.>] *|\b(?:please|must|should|try|just|then|now|you (?:can|could|may|(?:need|have|want) to)) )"
    r"(?:(?:re-?)?run|execute|invoke|paste):? +`?([^`\"\n;]{1,200})|"
    r"\b(?:by|try) (?:running|executing) +`?([^`\"\n;]{1,200})|"
    r"(?:\b(?:solution|hint|workaround|command|mended|cured|solved|the fix)|^fix)(?: (?:is|by|with|was))?: +"
    r"`?([^`\"\n;]{1,200})",
    patterns.I,
)
"""Where somebody is asked to run what follows."""

_ENGLISH = words_of(
    "the a an it its them all this that these those with without in on by at to into out from for as and or of"
    " only both each every any times more my our your through over twice once after before first test tests"
    " check checks command commands script build too is was are fine ok okay not again against under until"
)
"""What may follow `run` where no command does."""


def names_a_command(text: str) -> bool:
    """Whether a text names a command that does more than check, build, format or look at what is there."""
    end, ran = 0, False
    for found in _QUOTED.finditer(text):
        before, span = text[end : found.start()], found[1]
        ran = _RAN.search(before) is not None or (ran and before in _JOINED)
        named = _is_command(span) or (ran and not span.strip().isalnum())
        shown = _NOT_RUN.search(before) is not None or text.startswith(" became", found.end())
        if named and not shown and not harmless(span):
            return True
        end = found.end()
    for found in _ASKED.finditer(text):
        run, tried, cured = found.groups("")
        words = (run or tried or cured).strip(".,:;'()! ")
        first = words.partition(" ")[0].lower()
        inserts = "`" not in found[0] and text.startswith("`", found.end())
        if first not in _ENGLISH and (not cured or _is_command(words)) and (inserts or not harmless(words)):
            return True
    return False


def _is_command(text: str) -> bool:
    """Whether a text reads like a command with arguments: a program, and more than one plain word."""
    found = _COMMAND.match(text)
    return found is not None and bool(found[2] or not found[1].isalpha()) and _CODE.match(text) is None


def _seen(text: str) -> str:
    """A text as a reader sees it: one form of each letter, and nothing that shows nothing."""
    return "".join(char for char in composed(text) if unicodedata.category(char) != "Cf")


def acts(text: str, polarity: int = 1) -> bool:
    """Whether a claim acts: it holds an address, a pipe to a shell, a registry, a credential, a command that installs
    or widens rights, or it asks for a deletion, a push, a permission, or for something always to be run.

    A plain prohibition ("never push to main", polarity -1) may name what it forbids, but nothing that reaches out.
    """
    seen = _seen(text)
    if _REACHES_OUT.search(seen) or is_risky(seen):
        return True
    seen = seen.replace("not by a push", "")
    return _CHANGES.search(seen) is not None and (polarity >= 0 or _FORBIDS_NOT.search(seen) is not None)
