"""Whether a value is likely a secret, by its letters and by the name that it stands under.

A secret was drawn at random: its letters, digits and cases change often and spell no words. What programs write beside
their secrets was named by people: paths, identifiers, versions, words with a number. Hashes and ids were drawn at
random too, so that there the name decides.
"""

import base64
import binascii
import itertools
import math
from collections import Counter
from collections.abc import Callable

from memctl.domain.support import patterns

_PLACEHOLDER = patterns.compile(
    r"^(?:your|my|some|the|an?|this|that|new|old|example|sample|dummy|fake|mock|foo|bar|changeme|placeholder|redacted"
    r"|undefined|null|none|true|false|string|process\.env|os\.environ|import\.meta|env|secrets|vault|ref)(?:[^a-z0-9]|$)"
    r"|placeholder|change_?me|your[_-]|[_-]here$|example\.(?:com|org)|\.\.\.|…|\*\*\*|xxxx|redacted",
    patterns.I,
)
_DIGEST = patterns.compile(
    r"^(?:sha\d*[:-])?(?:[0-9a-f]{7,32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{128})$"
    r"|^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$|^(?:sha\d+|h1|md5)[:-]",
    patterns.I,
)
_HEX = patterns.compile(r"^[0-9a-f]{20,}$", patterns.I)
_PATH = patterns.compile(
    r"^[~.]{0,2}/[\w.-]+/|^[A-Za-z]:[\\/]|^\.{1,2}/|://|^[\w-]+(?:/[\w-]+)+\.\w+$|@\d+\.\d"
    r"|^[a-z_]\w{0,19}(?:\.[a-z_]\w{0,19})+$"
    r"|\.(?:py|js|ts|tsx|jsx|mjs|go|rs|md|json|ya?ml|toml|txt|html|css|sh|pem|crt|key|pub|lock|log|csv|xml|java|rb|php)$",
    patterns.I,
)
_DATED = patterns.compile(r"^(?:19|20)\d\d-?\d\d-?\d\d(?:$|[T_ .:-]\d*)")
_PIECES = patterns.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_CLUSTER = patterns.compile(r"[bcdfghjklmnpqrstvwxz]{5}|[aeiou]{4}|q[^u]|[jqz][bcdfgjkmnpqrstvwx]", patterns.I)
_VOWEL = patterns.compile(r"[aeiouy]", patterns.I)
_ALGORITHM = patterns.compile(
    r"^(?:sha|md|rsa|aes|utf|hs|rs|es|hmac|base|blake|argon|pbkdf|oauth|ed|x|secp|tls|ipv)[-_]?\d", patterns.I
)
_SIGN = patterns.compile(r"[!@#%^&*+?~]")
_PROGRAM = patterns.compile(r"^[a-z]+(?:_[a-z0-9]+)+$|^[a-z]+(?:[A-Z][a-z0-9]+)+$|^[A-Z]+(?:_[A-Z0-9]+)+$")
"""A name as programs have them."""
_BYTE = patterns.compile(r"([0-9]+)")
_BYTE_IN_HEX = patterns.compile(r"(?:0x| )([0-9a-f]{2})\b", patterns.I)
_RUN = patterns.compile(r"[A-Za-z0-9+/]{16,}={0,2}")
_FILLED_IN = patterns.compile(
    r"\$[{(]|\{\{|\}\}|\{%|<%|%>|#\{|@\{|%\{|%\([A-Za-z_]\w*\)|\{\d*\}"
    r"|%[0-9.+-]*[dfsvqx](?:[^A-Za-z]|$)|=>|[?][.:]|&&|\|\||\(\)|==|\+=|;$"
)
"""What stands in a value that is filled in when it is used."""
_ASKED = patterns.compile(
    r"^(?:\$(?:env:)?[A-Za-z_]\w*|%[A-Za-z_]\w*%|&[A-Za-z_]\w*;?|@[A-Za-z_]\w*@)+$|^[A-Za-z_][\w.]*(?:\(.*\)|\[.*\])$"
    r"|^\{[^{}]*\}$|^<[^<>]*>$|^\[[^\[\]]*\]$|^\$?\{[^{}]*\}$"
)
"""A variable, a call, or a blank to fill in, and nothing else."""
_NAMED_PART = patterns.compile(r"\{([A-Za-z_][\w.]*)(?:[!:][^{}]*)?\}|\$([A-Za-z_]\w+)")
_WORDS_ALONE = patterns.compile(r"^(?:[A-Za-z]{4,}|[A-Za-z]+(?:[._][A-Za-z]+)+)[0-9]{0,2}$")
"""The name of a field or of a variable."""
_WORD = patterns.compile(r"[a-z]{5}|[A-Z]{6}")
_NO_PASSWORD = patterns.compile(r"://|\\[wsdbSWD]|\[\^|\(\?|[a-z0-9A-Z]-[a-zA-Z0-9]\]|\.\*|\.\+|^\^.*\$$")
_PROSE = patterns.compile(
    r"(?:^|[^a-z])(?:the|an?|is|are|was|must|at|least|your|you|to|for|of|in|on|with|and|or|not|no|be|has|have|it|this|that"
    r"|should|can|cannot|please|enter|invalid|wrong|minimum|min|max|maximum|char(?:acter)?s?|letters?|digits?|numbers?"
    r"|passwords?|passwd|passphrases?|passcodes?|tokens?|secrets?|keys?|reset|forgot|change|confirm|required|optional"
    r"|string|default|see|from|will|users?|by|as|if|set|new|old|true|false|null|none|string|error|test|step|version"
    r"|expires?|days?|hours?|minutes?|seconds?|bits?|bytes?|todo|note|example)(?:[^a-z]|$)|\S\S: |[=<>]{2}|[({]$",
    patterns.I,
)
"""What people say of a password, and no password holds."""
_OF_NAMES = frozenset("_-./: ")
"""Signs that names have, too."""
_INSIDE = patterns.compile(
    r"^[\w.-]*(?:com|by|tres|sur|over|under|low|high|band|all|multi)pass(?:[^\w.-]|$)", patterns.I
)

_LONGEST_PASSWORD, _MOST_WORDS = 200, 6
"""Characters between quotes, and words, of which a password may consist: longer ones are texts."""

_LONGEST_WORD = 14
"""Letters of the longest piece that may be a word."""

_LONGEST_BLOCK = 40_000
"""Characters between the lines of a key block."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_IDS = _words(
    "toolu srvtoolu msg req call resp item run thread step file org proj asst fc rs evt cus sub prod price"
    " chatcmpl cmpl gen ses sess prt session agent task job build trace span user usr node block hook plan prj dpl team"
    " pi ch in txn acct inv ws reqs batch vs ft ftjob conv event request response message tool uuid id sha sha1 sha256"
    " sha512 md5 h1 img image tmp temp css js chunk hash commit branch pr issue test tests mcp snap fixture v1 v2"
    " chain artifact upload download draft"
)
"""First words of ids, which are as random as secrets."""

_PREFIXES = _words("sk pk rk ak pat tok tkn token key api apikey secret sec live prod bot oauth access pass auth")
"""First words of secrets."""

_KEYS = _words("key keys token tokens auth access secret secrets private salt credential credentials")

_PUBLIC = _words(
    "public pub primary foreign cache sort partition range hash object bucket idempotency dedupe lookup row"
    " column map dict group item entry page next prev previous continuation cursor sync start end max min total"
    " input output num count prompt completion eos bos pad unk mask sep cls special config setting settings"
    " registry route query i18n translation locale message error host event feature flag state storage react arrow"
    " hot short shortcut parent child metric label tag node file path index json meta image issue project version"
    " commit checksum lock integrity digest etag last first unique composite natural surrogate csp site trace span"
    " push publishable recaptcha turnstile of by the a no any each"
)
"""What stands before `key` or `token` where it is none to keep: what a map, a page or a table is addressed by."""

_ABOUT = _words(
    "id ids uid uuid guid name names type types kind count counts hint file files filename path paths url uri link"
    " endpoint version policy header headers length len size expiry expires expire expired expiration ttl prefix suffix"
    " field column label alias arn ref source location dir folder pattern regex format scheme method algorithm alg"
    " rotation hash hashes fingerprint digest checksum status state at date time timestamp age limit max min var store"
    " storage provider server host port user username owner group role scope scopes issuer audience usage used budget"
    " manager service ring pair pairs map set list error errors message class handler filter test tests case mode"
    " required enabled disabled created updated last next checker validator generator input output param params args"
    " example sample template total per cost price percent rate index row code codes"
)
"""What stands behind `key` or `token` where the value is about one."""
_BEHIND = patterns.compile(
    r"(?:key|token|secret|passw(?:or)?d|passphrase|passcode|passwort|pwd|credential|[_-]pw)s?"
    r"(?:[_-]?(?:base|value|string|b64|base64|data|prod|production|dev|test|live|staging|v?[0-9]))?"
    r"((?:[_-][a-z0-9]{2,12}){1,3})$",
    patterns.I,
)

_STRONG = patterns.compile(
    r"secret|token|pass|pwd|[_-]pw\b|credential|(?:api|access|private|auth|account)[ _.-]?key", patterns.I
)


def entropy(value: str) -> float:
    """Shannon's, in bits a character."""
    counts = Counter(value).values()
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts)


def spelt(value: str) -> bool:
    """Whether words and short numbers make it up, as they do an identifier, a path or a phrase."""
    pieces = [found[0] for found in _PIECES.finditer(value)]
    numbers = [piece for piece in pieces if piece.isdecimal()]
    words = [piece for piece in pieces if not piece.isdecimal()]
    letters = sum(map(len, words))
    if len(numbers) > 3 or any(len(each) > 4 for each in numbers) or (numbers and _HEX.search(value)):
        return False
    if len(numbers) > 1 and letters < 4 * len(words) and len(value) >= 16:
        return False
    known = 0
    for word in words:
        if len(word) < 3:
            continue
        if len(word) > _LONGEST_WORD or not _VOWEL.search(word) or _CLUSTER.search(word):
            return False
        known += len(word)
    return known * 3 >= letters * 2


def drawn(value: str) -> bool:
    """Whether the value looks drawn at random: many different characters, digits among the letters, no words."""
    if len(value) < 12 or _PLACEHOLDER.search(value) or _PATH.search(value):
        return False
    digits = sum(character.isdecimal() for character in value)
    if digits < 2 or not any(character.isalpha() for character in value):
        return False
    return len(set(value)) >= 8 and entropy(value) >= 2.8 and not spelt(value)


def unspoken(value: str) -> bool:
    """Whether letters alone, in one run, are longer than words get."""
    return len(value) >= 20 and value.isalnum() and len(set(value)) >= 12 and not spelt(value)


def shaped(value: str, name: str = "") -> bool:
    """Whether a value of a vendor's shape is neither words nor a path."""
    return not _PATH.search(value) and not spelt(value)


def of_service(value: str, name: str = "") -> bool:
    """Whether what stands behind a service's first letters is neither words nor a path, and has a digit."""
    start = _TAILS.search(value)
    return (
        any(each.isdecimal() for each in value[4:])
        and shaped(value)
        and not spelt(value[start.end() :] if start else value)
    )


def assigned(value: str, name: str) -> bool:
    """Whether a value that a name stands before, with a sign of assignment between, is a secret."""
    strong = _STRONG.search(name) is not None
    if behind := _behind(name):
        return strong and len(value) >= 16 and _ABOUT.isdisjoint(behind) and not _public(name) and drawn(value)
    if _public(name) or _DATED.search(value) or (not strong and _first_word(value) in _IDS):
        return False
    if len(value) < (12 if strong else 16):
        return False
    if len(name) <= 6 and _DIGEST.search(value):  # a bare `key` or `auth` is a map's, or a file's
        return False
    return drawn(value) or unspoken(value)


def _behind(name: str) -> list[str]:
    """The words behind `key` or `token` in a name, but for one that ends in another such: `acme` of `api_key_acme`."""
    found = _BEHIND.search(name)
    words = _TAILS.split(found[1].lower()) if found else [""]
    return [] if not words[-1] or words[-1] in _KEYS or _STRONG.search(words[-1]) else words


def named(value: str, name: str) -> bool:
    """Whether a value that follows a name, with nothing between but a space or a dash, is a secret."""
    if (
        _public(name)
        or _DATED.search(value)
        or _first_word(value) in _IDS
        or (len(name) <= 7 and _DIGEST.search(value))
    ):
        return False
    run = _TAILS.split(value, 1)[0]
    if run != value and _HEX.search(run):  # the name of a file, with a hash in it
        return False
    return len(value) >= 14 and (drawn(value) or unspoken(value))


def signs_in(value: str, name: str) -> bool:
    """Whether what somebody signs in with is a secret. A short hash is a commit's, even of `fix auth`."""
    return len(value) >= 20 and _first_word(value) not in _IDS and (drawn(value) or unspoken(value))


def dotted(value: str, name: str) -> bool:
    """Whether the first and the last of a token's parts were drawn, of letters in both cases and digits."""
    parts = value.split(".")
    return all(drawn(each) and len({_kind(char) for char in each}) == 3 for each in (parts[0], parts[-1]))


def prefixed(value: str, name: str) -> bool:
    """Whether a token that says with its first letters whose it is, is a secret: `abc_`, and what was drawn."""
    words = _TAILS.split(name.lower())
    if len(value) < 20 or words[0] in _IDS or _PATH.search(value) or _DATED.search(value):
        return False
    known_prefix = not _PREFIXES.isdisjoint(words)
    if _HEX.search(_TAILS.split(value, 1)[0]) and not known_prefix:
        return False
    kinds = [_kind(character) for character in value]
    changes = sum(one != next for one, next in itertools.pairwise(kinds))
    if known_prefix:
        return "0" in kinds and changes >= 3 and drawn(value)
    mixed = len(set(kinds)) == 3 or (len(value) >= 28 and "0" in kinds)
    return mixed and changes * 4 >= len(value) and drawn(value)


_TAILS = patterns.compile(r"[_.-]")


def block(value: str, name: str = "") -> bool:
    """Whether text between the lines of a key block is that block, and not code that speaks of one."""
    if len(value) > _LONGEST_BLOCK:
        return False
    runs = [found[0] for found in _RUN.finditer(value)]
    return any(len(run) >= 24 or not spelt(run) for run in runs) and sum(map(len, runs)) * 4 > len(value)


def encoded(value: str, name: str) -> bool:
    """Whether a value within a secret's manifest is data in Base64."""
    if name.strip("\"' ").lower() in ("apiversion", "kind", "name", "namespace", "type", "uid", "resourceversion"):
        return False
    try:
        plain = base64.b64decode(value, validate=True)
    except binascii.Error:
        return False
    return len(value) >= 24 or (plain.isascii() and plain.decode("ascii").strip().isprintable())


def kept(value: str, name: str) -> bool:
    """Whether a value that stands where only secrets do is one, and no placeholder for it."""
    return not _PLACEHOLDER.search(value)


def chosen(value: str, name: str) -> bool:
    """Whether what stands where only a password does was chosen as one: letters, and digits among them."""
    if len(value) < 6 or _PLACEHOLDER.search(value) or _PATH.search(value) or _DATED.search(value):
        return False
    if _ALGORITHM.search(value) or _inside_a_word(name):
        return False
    return any(each.isdecimal() for each in value) and sum(each.isalpha() for each in value) >= 2


def made_up(value: str, name: str) -> bool:
    """Whether a value under a password's name is one, and no name itself: with a sign, or digits that no name has."""
    if not chosen(value, name) or "/" in value or _PROGRAM.search(value) or _public(name) or _template(value):
        return False
    return _SIGN.search(value) is not None or sum(each.isdecimal() for each in value) >= 2


def quoted(value: str, name: str) -> bool:
    """Whether what stands between quotes under a password's name is one, whatever signs it holds: it is no template,
    no call, no pattern, no path and no prose."""
    plain = value.strip()
    if not 6 <= len(plain) <= _LONGEST_PASSWORD or _inside_a_word(name) or _NO_PASSWORD.search(plain):
        return False
    if _ASKED.search(plain):
        return False
    if _noisy(plain):
        return True
    if _PLACEHOLDER.search(plain) or _PATH.search(plain) or _template(plain):
        return False
    signs = {each for each in plain if not each.isalnum() and not each.isspace()}
    if not any(each.isdecimal() for each in plain) or sum(each.isalpha() for each in plain) < 2:
        return False
    if any(each.isspace() for each in plain):
        return bool(signs) and len(plain.split()) <= _MOST_WORDS and not _PROSE.search(plain)
    return bool(signs - _OF_NAMES)


def _noisy(value: str) -> bool:
    """Whether letters, digits and signs take turns as only a generator lets them."""
    if len(value) < 10 or any(each.isspace() for each in value) or _WORD.search(value):
        return False
    kinds = [_kind(each) if each.isalnum() else "!" for each in value]
    changes = sum(one != next for one, next in itertools.pairwise(kinds))
    return len(set(kinds)) >= 3 and changes * 2 >= len(value) - 1


def _template(value: str) -> bool:
    """Whether a value is filled in, or asked of something, when it is used."""
    if _FILLED_IN.search(value) or _ASKED.search(value):
        return True
    return any(_WORDS_ALONE.search(found[1] or found[2]) for found in _NAMED_PART.finditer(value))


def _inside_a_word(name: str) -> bool:
    """Whether `pass` is the end of another word in a name: of `compass`, not of `dbpass` or `userPass`."""
    return _INSIDE.search(name) is not None


def beside(value: str, name: str) -> bool:
    """Whether a value that a structure puts under a name is a secret."""
    return assigned(value, name) or (_STRONG.search(name) is not None and made_up(value, name))


def assigned_here(value: str, name: str) -> bool:
    """Whether a value is a secret that stands where secrets are given, under any name."""
    return drawn(value) or unspoken(value) or (chosen(value, name) and _SIGN.search(value) is not None)


def given(value: str, name: str) -> bool:
    """Whether what a call is given or a command prints was drawn, or made up as a password is."""
    return drawn(value) or unspoken(value) or made_up(value, "")


def value_like(word: str) -> bool:
    """Whether a word may be a value that stands apart from its name: drawn, made up, or of Base64."""
    return word.endswith("=") or (given(word, "") or quoted(word, ""))


def placed(value: str, name: str) -> bool:
    """Whether what stands where only a secret does is of that secret's kind: behind no name, what says so itself."""
    if not name:
        return value.startswith("K10")
    if name.startswith('"') and "key" not in name:
        return value.startswith("md5")
    return len(value) >= 20 and not _PLACEHOLDER.search(value) and not spelt(value)


def of_bytes(value: str, name: str) -> bool:
    """Whether bytes in a list were drawn: most of them differ, up to large ones, in no order."""
    number = _BYTE_IN_HEX if "0x" in value or value.startswith("<") else _BYTE
    base = 16 if number is _BYTE_IN_HEX else 10
    found = [int(each[1], base) for each in number.finditer(value)]
    if max(found, default=256) > 255 or (not name and len(found) != 64):
        return False
    rising = sum(one < next for one, next in itertools.pairwise(found))
    return len(set(found)) * 3 >= 2 * min(len(found), 64) and max(found) >= 160 and 4 * rising <= 3 * len(found)


def unlike_words(value: str, name: str) -> bool:
    """Whether what stands where only a secret does, letters alone or not, was neither written by a person for people,
    nor is filled in later."""
    if _PLACEHOLDER.search(value) or _PATH.search(value) or _template(value):
        return False
    password = "token" not in name.lower() and "key" not in name.lower()
    return drawn(value) or unspoken(value) or (len(value) >= (6 if password else 12) and not spelt(value))


def grouped(value: str, name: str) -> bool:
    """Whether letters in groups of four are no words."""
    return not all(spelt(each) for each in value.lower().split())


def drawn_here(value: str, name: str) -> bool:
    """Whether a value was drawn, under no name."""
    return drawn(value)


def goes_on(value: str) -> bool:
    """Whether what follows a secret, joined to it or on the next line, was drawn as it was."""
    if _DATED.search(value) or _PLACEHOLDER.search(value):
        return False
    mixed = len(value) >= 6 and len({_kind(each) for each in value}) == 3
    return drawn(value) or unspoken(value) or (mixed and not spelt(value))


def _first_word(value: str) -> str:
    return _TAILS.split(value, 1)[0].lower()


def _kind(character: str) -> str:
    return "0" if character.isdecimal() else "A" if character.isupper() else "a"


def _public(name: str) -> bool:
    words = [found[0].lower() for found in _PIECES.finditer(name)]
    while words and words[-1] in _KEYS:
        words.pop()
    return bool(words) and words[-1] in _PUBLIC


JUDGES: dict[str, Callable[[str, str], bool]] = {
    each.__name__: each
    for each in (
        assigned,
        named,
        signs_in,
        shaped,
        of_service,
        dotted,
        prefixed,
        block,
        encoded,
        kept,
        chosen,
        made_up,
        quoted,
        beside,
        assigned_here,
        drawn_here,
        given,
        placed,
        of_bytes,
        unlike_words,
        grouped,
    )
}
