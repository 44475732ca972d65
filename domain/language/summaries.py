"""What an agent's words say of the work: the sentences worth keeping, without announcements, questions and labels."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from string import ascii_lowercase

from memctl.domain.failures.explanations import sentences
from memctl.domain.shell.programs import words_of
from memctl.domain.support import patterns
from memctl.domain.support.bounded import one_line
from memctl.domain.support.remembered import remembered
from memctl.domain.support.text import Runs

LONGEST_POINT = 140
"""Characters of one point of a list."""

_ROOM = 40
"""Characters in which the beginning of a point still says something."""

_OPENER = patterns.compile(
    r"\A(?:(?:(?:all |and )?(?:done|fixed|perfect|great|excellent|good|ok(?:ay)?|clean|updated)|"
    r"the (?:fix|change|work|implementation|task) is (?:now )?(?:complete|done|in place|ready))\b"
    r" ?(?:[.!,] *|[-—–] +))+",
    patterns.I,
)
"""How an agent rejoices before it reports."""

_SAYS_NOTHING = patterns.compile(
    # What an agent is about to do or asks, how checks went, labels.
    r"^(?:let me|i'll|i will|first|next|good|great|perfect|done|ok(?:ay)?|here's|here is|let's|actually|i need|hmm|"
    r"wait|i (?:can )?see|"
    # "Now the total is …" says how things are, "Now run the tests" what comes.
    r"now(?!,? (?:(?:the|it|when|both|all|each|every|they|this|that|these|those|users?|only|no|an?)\b|`|"
    r"(?-i:(?!I\b)[A-Z]))))\b|"
    r"\b(?:let me|let's|want me to|would you like|shall i|should i|ready to|you can now)\b|[:?]$|"
    r"^(?:all |both |the )?(?:\d+ )?(?:[\w-]+ )?(?:tests?|lint|linter|typecheck|checks|build|commit|hooks)\b.{0,40}"
    r"\b(?:pass(?:es|ed|ing)?|clean|green|succe\w+)\b|"
    r"\b(?:all|\d+) (?:\d+ )?(?:[\w-]+ )?tests (?:now )?pass|^all clean\b|"
    r"^(?:yes,? )?(?:(?:pushed|committed|fixed|done|and|merged|rebased|it)\b[ ,]*)+[^a-z]*$|"
    r"\b(?:successfully (?:fix|implement|complet|updat)ed|made) (?:the|that|this|all) (?:issue|changes?|fix|work)\b|"
    r"\bthe (?:fix|change|work|implementation|task) is (?:now )?(?:complete|done|working|in place|ready)\b|"
    r"\b(?:fixed|resolved) (?:exactly )?(?:the|that|this|your|it|both|all)(?: \w+)? "
    r"(?:issue|bug|problem|error)s?[.!]?$|"
    r"^(?:fixed|committed|pushed)\b[^.]{0,24}\bas\b|\b[0-9a-f]{7,40}\b.{0,4}$",
    patterns.I,
)
_PLAIN_WORD = patterns.compile(r"(?<![\w`./:-])[^\W\d_]{2,}(?![\w`/]|[.:]\w)")
_DONE = words_of(
    "added removed replaced fixed changed updated moved renamed created implemented extracted refactored introduced "
    "deleted dropped corrected converted simplified merged wrapped passed switched marked enabled disabled restored "
    "rebased resolved wired expanded adjusted configured migrated cleaned reworked handled skipped reduced "
    "bumped inlined stored injected guarded covered documented reverted inserted limited clarified normalised "
    "normalized rewrote rewritten wrote written made kept took instead longer now"
)
"""Words of what was done, or of how things are since ("no longer", "now")."""
_DONE_BY_ME = _DONE | words_of("set reset put split cut built")
"""With words that say so only where somebody did it, as they are of the present tense too."""
_SAYS_DONE = patterns.compile(
    r"\bthe (?:fix|change) is an? |`[^`]+` ?(?:→|->) ?`|했습니다|하였습니다|됩니다|변경|추가|수정|제거",
    patterns.I,
)
_DID = patterns.compile(
    r"(?:I|we)(?:'ve| have)? (?:also |now )?(?=(?P<did>\w+))|"
    r"(?:Also )?(?:Re)?(?:Wrote|Made|Kept|Took|Put|Built|Split)\b|"
    r"(?!(?:Need|Fail|Expect|Unexpect|Suppos|Bas|Relat|Confirm|Verifi|Check|Test|Pass|Commit|Push|Us|Allow|Requir|"
    r"Propos|Suggest|Recommend|Detail|Interest|Exclud|Includ|Call|Caus|Return|Show|Print|Treat)ed\b|"
    r"Un[a-z]+ed\b|Need|Indeed|Speed|Seed|Feed|Embed)"
    r"(?-i:[A-Z])[a-z]+ed\b",
    patterns.I,
)
_IS_SINCE = patterns.compile(r"\b(?:has|have) been (\w+)", patterns.I)
_TO_BE = words_of("should must could would will because fail fails failed")
_IS_TO_BE = patterns.compile(
    r"\b(?:need(?:s|ed)? to|going to|about to|have to|has to|plan to|"
    r"(?:issue|problem|bug|cause|reason|error) (?:is|was)|(?:is|was|are|were) (?:failing|wrong|broken|caused)|"
    r"there(?:'s| is| was| are| were) (?:an?|some|\d+))\b",
    patterns.I,
)
"""What is still to be done, or was wrong."""
_SINCE = patterns.compile(r"\b(?:now|no longer)\b|→", patterns.I)
_CODE_LEADS = patterns.compile(r"`[^`]+`(?: \([^)]*\))? ?[-—–:=]+ ")
"""A name that is spoken of: "`cart.py` — "."""

_WORDS = Runs(ascii_lowercase)
_MAY_SAY_DONE = patterns.compile(
    r"ed\b|\b(?:now|longer|instead|(?:re)?wr(?:ote|itten)|made|kept|took|put|built|split|set|cut|reset|"
    r"fix is|change is)|→|->|[가-힣]",
    patterns.I,
)
"""What is in every line that says what was done."""
_REPLIES = patterns.compile(r"(?:but|however|yes|no|so|which)\b", patterns.I)
_FENCED = patterns.compile(r"```.*?(?:```|\Z)", patterns.S)
_POINT = patterns.compile(r"(?:[-*•]|\d{1,2}[.)])\s+(?=\S)")
_LABEL = patterns.compile(r"#|\*\*[^*]+\*\*:?$")
_OF_BEFORE = patterns.compile(
    r"(?:#+ *|\*\*)[^*]*?\b(?:before|old|previous(?:ly)?|problems?|cause|why|wrong|issue)\b", patterns.I
)
"""A heading of what was there before, or of what was wrong with it."""


_POLITE = patterns.compile(
    r"(?:\W*(?:(?:you(?:['’]| a)re (?:very |most |so )?welcome|(?:i['’]?m )?(?:very |so )?(?:glad|happy) (?:to help|"
    r"(?:i|it|that|this|everything)\b)|thank(?:s| you) for|let me know if|feel free to|"
    r"have a (?:great|good|nice|lovely)\b)[^.!?\n]{0,100}|"
    r"any ?time|no problem|no worries|my pleasure|thanks|thank you|cheers|enjoy|good luck|"
    r"gern geschehen|de nada|천만에요|별말씀을요))+\W*",
    patterns.I,
)
POLITENESS = 240
"""Characters of a text that is tried for nothing but politeness."""


def is_politeness(text: str) -> bool:
    """Whether an agent's words only take thanks, or say goodbye."""
    return len(text) <= POLITENESS and bool(_POLITE.fullmatch(text))


def gist_of(text: str, limit: int) -> str:
    """The sentences of an agent's words that say something, as many as fit in `limit` characters."""
    found = ""
    for sentence in sentences(text):
        sentence = sentence.replace("**", "")
        if sentence[0] in "|+" or not says_words(sentence) or _SAYS_NOTHING.search(sentence):
            continue
        if found and len(found) + 1 + len(sentence) > limit:
            break
        found = f"{found} {sentence}" if found else one_line(sentence, limit)
        if not found.endswith((".", "!", "…")):
            found += "."
    return found


@remembered(64, longest=16_384)
def account_of(text: str, limit: int, *, sure: bool = False) -> str:
    """What an agent's words say of what it did, as many sentences as fit in `limit` characters; empty where nothing.

    What is announced ("The buttons were changed:") is given with the points of the list below it. With `sure`, only
    what the agent says of itself, or of what has been done, and not how things are.
    """
    account, lead = "", 0
    for sentence, point in done_sentences(text, sure=sure):
        if sentence.rstrip(".:") in account:
            continue
        if not point:
            account = _closed(account, lead)
            lead = len(account)
        between = "" if not account else " " if account[-1] in ".!…:" else "; " if point else ". "
        room = limit - len(account) - len(between)
        if account and len(sentence) > room and not (account.endswith(":") and point and room >= _ROOM):
            break
        account += between + one_line(sentence, room)
    account = _closed(account, lead)
    return account + "." if account and account[-1] not in ".!…" else account


def _closed(account: str, lead: int) -> str:
    """An account whose last sentence, from `lead` on, announces nothing: without it, where it says nothing itself."""
    if not account.endswith(":"):
        return account
    return account.rstrip(":") if _did(account[lead:].lstrip(". ;")) else account[:lead]


def says_done(sentence: str, *, sure: bool = False) -> bool:
    """Whether a sentence says what was done, and neither what was wrong nor what is still to come."""
    if sentence[:1] in "|+" or _REPLIES.match(sentence):
        return False
    if named := _CODE_LEADS.match(sentence):
        rest = sentence[named.end() :]
        done = _did(rest[:1].upper() + rest[1:])
        return (done or (not sure and " now " in rest)) and not _SAYS_NOTHING.search(sentence.rstrip(":"))
    done = _did(sentence) or (sure and (been := _IS_SINCE.search(sentence)) is not None and been[1].lower() in _DONE)
    if not done and (sure or not _reports(sentence)):
        return False
    return (says_words(sentence) or "→" in sentence) and not _SAYS_NOTHING.search(sentence.rstrip(":"))


def _reports(sentence: str) -> bool:
    """Whether a word of it says that something was done, and none that it is to be done."""
    words = _WORDS.within(sentence.lower())
    if words and words[-1] == "now" and sentence[-1] != ":":
        del words[-1]  # "Push it now."
    if _DONE.isdisjoint(words) and not _SAYS_DONE.search(sentence):
        return False
    return _TO_BE.isdisjoint(words) and not _IS_TO_BE.search(sentence)


def _did(sentence: str) -> bool:
    """Whether it begins with what was done, whatever it says beside."""
    found = _DID.match(sentence)
    return found is not None and (found["did"] is None or found["did"].lower() in _DONE_BY_ME)


def done_sentences(text: str, *, sure: bool) -> Iterator[tuple[str, bool]]:
    """The sentences that say what was done, and the points of a list that one of them announces (True)."""
    announced = past = False
    points = _Points()
    for line in (_FENCED.sub("\n", text) if "```" in text else text).splitlines():
        indented, line = len(line) - len(line.lstrip()), line.strip()
        marked = line.startswith(("#", "**"))
        label = marked and _LABEL.match(line) is not None
        of_before = marked and _OF_BEFORE.match(line) is not None
        if label:
            past = of_before
            announced = announced and line[0] != "#"
        if not line or past or of_before or (label and announced):
            continue
        if announced and _POINT.match(line):
            yield from points.read(line, indented)
            continue
        yield from points.ended()
        announced = False
        if not _MAY_SAY_DONE.search(line):
            continue
        # A heading, and a point that nothing announces, are often no sentence.
        doubtful = sure or label or (_POINT.match(line) is not None and not _SINCE.search(line))
        for sentence in sentences(line):
            sentence = _OPENER.sub("", sentence.replace("**", ""))
            if says_done(sentence, sure=doubtful):
                announced, points = sentence.endswith(":"), _Points()
                yield sentence[0].upper() + sentence[1:], False
    yield from points.ended()


class _Points:
    """The points of a list that a sentence announces. Of those further in, only the first below a point that names a
    thing and says nothing of it counts: it says what the thing is."""

    def __init__(self) -> None:
        self._depth = -1
        self._bare = ""
        """The last point, where it only names a thing."""

    def read(self, line: str, indented: int) -> Iterator[tuple[str, bool]]:
        self._depth = indented if self._depth < 0 else self._depth
        said = _point(line)
        if indented > self._depth:
            if said and self._bare:
                yield one_line(f"{self._bare}: {said}".rstrip(".:"), LONGEST_POINT), True
                self._bare = ""
            return
        yield from self.ended()
        if says_words(said) or "→" in said:
            yield one_line(said.rstrip(".:"), LONGEST_POINT), True
        else:
            self._bare = said.rstrip(".:")

    def ended(self) -> Iterator[tuple[str, bool]]:
        if self._bare:
            yield self._bare, True
        self._bare = ""


def _point(line: str) -> str:
    """A point of a list as far as its first sentence that says something."""
    said = ""
    for sentence in sentences(line):
        said = f"{said.rstrip('.:')}: {sentence}" if said else sentence
        if says_words(said) or len(said) > LONGEST_POINT:
            break
    return said.replace("**", "")


def says_words(sentence: str) -> bool:
    plain = sum(len(word) > 1 and word.isascii() and word.isalpha() for word in sentence.split())
    return plain >= 3 or sum(1 for _ in islice(_PLAIN_WORD.finditer(sentence), 3)) == 3
