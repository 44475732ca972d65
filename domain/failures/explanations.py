"""Which of an agent's sentences explain an error, and not only announce what comes next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from posixpath import basename, splitext
from string import ascii_uppercase, digits
from typing import NamedTuple

import msgspec

from memctl.domain.events.facts import ErrorOccurred
from memctl.domain.failures.solutions import names_within
from memctl.domain.shell.programs import words_of
from memctl.domain.support import patterns
from memctl.domain.support.bounded import one_line
from memctl.domain.support.remembered import remembered

LONGEST, MOST = 1_400, 6
"""Characters and sentences of an explanation."""


class Explained(NamedTuple):
    """What the agent said, and after how many uses of tools. A thought is believed less."""

    at: int
    text: str
    thought: bool


def explanation_of(
    error: ErrorOccurred,
    said: Sequence[Explained],
    beside: Sequence[ErrorOccurred] = (),
    changed: str = "",
    *,
    alone: bool = False,
) -> str:
    """The agent's sentences that explain this error: such that name something of it, or of what was `changed` for it.

    Of an error that came up `beside` others, only sentences that name what the others do not hold: the rest may be of
    those. Where it is `alone`, "the test fails because" can be of no other.
    """
    if not any(_weighed(each.text) for each in said):
        return ""
    others = _FORMATS.union(*map(names_of, beside))
    marks = _marks_of(error, others, _symbols(changed) if not beside else frozenset())
    kept: dict[str, None] = {}
    for sentence in _about(error, said, marks, alone=alone and not beside):
        if sum(map(len, kept)) + len(sentence) > LONGEST or len(kept) == MOST:
            break
        kept[sentence] = None
    return " ".join(kept)


class _Marks(NamedTuple):
    """By what a sentence is known to be of an error: the `words` of its message, names that are its `own`, those of its
    `files`, and the names of files and scripts in the command that was `called`."""

    words: AbstractSet[str]
    own: AbstractSet[str]
    files: AbstractSet[str]
    called: Sequence[str]


def _marks_of(error: ErrorOccurred, others: AbstractSet[str], changed: AbstractSet[str]) -> _Marks:
    """Of a path only the file counts: of a project much is said that is of none of its errors."""
    message, *frames = (_FOLDERS.sub(" ", each) for each in (error.message, *error.frames))
    files = tuple(splitext(basename(each))[0] for each in error.files)
    lean = msgspec.structs.replace(error, message=message, frames=tuple(frames), files=files)
    tests = tuple(each for each in error.frames if not _FOLDERS.search(each))
    own = names_of(msgspec.structs.replace(lean, frames=tests, files=()), own=True) - others
    called = tuple({found[0]: None for found in _CALLED.finditer(error.command[:2_000])})
    return _Marks(names_of(lean) - others, own | changed, names_within(" ".join((*files, *frames))) - others, called)


_FOLDERS = patterns.compile(r"(?:[\w.@~+:-]*[/\\])+(?=[\w@+-]+\.\w)|(?:~|[A-Za-z]:)?[/\\](?:[^\s'\"`:/\\]+[/\\])+")
"""Where a file lies."""
_FORMATS = frozenset(("json", "yaml", "toml", "html"))
"""How names of files end that say nothing of one."""
_CALLED = patterns.compile(r"\b[A-Za-z]\w{3,}(?:[.-]\w{3,})+")
"""The name of a file or of a script."""


def _about(error: ErrorOccurred, said: Sequence[Explained], marks: _Marks, *, alone: bool) -> list[str]:
    """The sentences that explain, and name what is the error's own, or of its words as many as no chance brings
    together. What was said goes before what was thought, of which only what names something of its own counts. What
    the agent took back later is left out."""
    for thought in (False, True):
        found: list[str] = []
        for each in said:
            if each.thought != thought:
                continue
            for sentence in _weighed(each.text):
                if _REVISES.match(sentence) and (_explains(sentence) or _DENIES.match(sentence)):
                    found.clear()
                if _says_why(sentence) and _adds(sentence, error):
                    found.append(sentence)
        named = [each for each in found if _names(each, marks, thought=thought)]
        if not named and alone and not thought:
            named = [each for each in found if links(each) and _is_of_kind(each, error)]
        if named:
            return named
    return []


def _is_of_kind(sentence: str, error: ErrorOccurred) -> bool:
    """Whether a sentence is of what failed, by its kind."""
    return "test failure" in error.error_types and _OF_TESTS.search(sentence) is not None


_OF_TESTS = patterns.compile(r"\btests?\b", patterns.I)


def _names(sentence: str, marks: _Marks, *, thought: bool) -> bool:
    names, symbols = names_within(sentence), _symbols(sentence)
    if not marks.own.isdisjoint(names) or any(word in sentence for word in marks.called):
        return True
    of_files = marks.files & names
    if len(of_files) >= _SHARED or not of_files.isdisjoint(symbols):
        return True
    return not thought and (len(marks.words & names) >= _SHARED or not marks.words.isdisjoint(symbols))


_SHARED = 2
"""Words of a message, none of them a name, that a sentence shares with it where it is about the same; one is enough
where the sentence quotes it."""


@remembered(512, longest=16_384)
def _symbols(text: str) -> frozenset[str]:
    """The names in a text that are written like symbols, or quoted."""
    return names_within(" ".join(_OPERAND.findall(text[:8_000])))


@remembered(256, longest=16_384)
def _weighed(text: str) -> tuple[str, ...]:
    """Those sentences of a text that explain something, or take back what was said."""
    found: list[str] = []
    before = ""
    for sentence in sentences(text):
        if _REVISES.match(sentence) or _says_why(sentence):
            follows = _GOES_ON.match(sentence) and before and not _says_nothing(before)
            if follows and found[-1:] == [before]:
                found.pop()
            found.append(f"{before} {sentence}" if follows else sentence)
        before = sentence
    return tuple(found)


_GOES_ON = patterns.compile(
    r"(?:this|that|it)(?:'s| is| was| happens| comes) (?:because|due|since|why|as)\b", patterns.I
)
"""How begins a reason of what the sentence before it says."""


def reasons_in(text: str, longest: int) -> str:
    """The sentences of a text that say of something why it is so, as many as so many characters have room for."""
    found = ""
    for sentence in sentences(text[:_LOOKED_AT]) if _LINKS.search(text[:_LOOKED_AT]) else ():
        if len(found) + len(sentence) < longest and _LINKS.search(sentence) and not _says_nothing(sentence):
            found = f"{found} {sentence}".lstrip()
    return found


_LOOKED_AT = 6_000
"""Characters of a text in which reasons are looked for."""


@remembered(1_024)
def _says_why(sentence: str) -> bool:
    return _explains(sentence) and not _says_nothing(sentence)


def _says_nothing(sentence: str) -> bool:
    """Whether a sentence only announces, asks, guesses, reports or rejoices."""
    return (
        len(sentence) < _SHORTEST
        or sentence.endswith("?")
        or _ANNOUNCES.match(sentence) is not None
        or guesses(sentence)
        or _LOOKS.search(sentence) is not None
        or (_LINKS.search(sentence) is None and (_PROPOSES.search(sentence) or _REPORTS.match(sentence)) is not None)
        or _NEXT_STEP.match(sentence) is not None
        or _rules_out(sentence)
    )


def _adds(sentence: str, error: ErrorOccurred) -> bool:
    """Whether a sentence says more than that the error came up."""
    return error.message not in sentence or _explains(sentence.replace(error.message, ""))


def cause_in(explanation: str, longest: int = 400) -> str:
    """The sentence of an explanation that names the cause: the last that links it by a word, for the first guess is
    often mended; else the first. One that only points back stands with what it is the reason of, unless both are
    longer than `longest`. Empty where there is none."""
    found = [each for each in sentences(explanation) if says_what_was_wrong(each)]
    at = next((at for at in reversed(range(len(found))) if _LINKS.search(found[at])), 0)
    if at and _GOES_ON.match(found[at]) and len(found[at - 1]) + len(found[at]) < longest:
        return f"{found[at - 1]} {found[at]}"
    return found[at] if found else ""


def links(sentence: str) -> bool:
    """Whether a sentence says by a word of its own that one thing comes of another."""
    return _LINKS.search(sentence) is not None and says_what_was_wrong(sentence)


def says_what_was_wrong(sentence: str) -> bool:
    """Whether a sentence may say what was wrong: it is of what is or was, not of what is to be done or was not so."""
    proposes = _NEXT_STEP.match(sentence) or (_PROPOSES.search(sentence) and not _NAMES_FAULT.match(sentence))
    return not proposes and not _LOOKS.search(sentence) and not _rules_out(sentence)


def causal(text: str) -> bool:
    """Whether any sentence of a text may link one thing to another."""
    return _LINKS.search(" ".join(text.split())) is not None


def guesses(sentence: str) -> bool:
    """Whether a sentence says what it says as a guess."""
    return _GUESSES.search(sentence) is not None


def _rules_out(sentence: str) -> bool:
    """Whether a sentence says what something does not come of, and not what of before that."""
    out = _RULES_OUT.search(sentence)
    if out is None or " but " in sentence[out.end() :]:
        return False
    link = _LINKS.search(sentence)
    return link is None or out.start() <= link.start()


def why_of(explanation: str) -> str:
    """The cause that an explanation names, as it stands before a change."""
    return one_line(cause_in(explanation, LONGEST_CAUSE).rstrip(".: "), LONGEST_CAUSE)


LONGEST_CAUSE = 160
"""Characters of a cause."""


def is_of(said: str, of: str, message: str) -> bool:
    """Whether what was said `of` one message may be said of another: it names nothing that is the one's alone."""
    names = names_within(_FOLDERS.sub(" ", message))
    if _symbols(_FOLDERS.sub(" ", of)) <= names:
        return True  # of the same file, in another folder or none
    return names_within(said).isdisjoint(_symbols(of) - names)


_BUT = r"(?:(?:but|oh|ah|so|hm+|ok(?:ay)?|and|well|wait|actually)[,.!—-]* )*"
_TAKES_BACK = (
    r"(?:no, |(?:that|this|it)(?:'s| is| was) (?:also )?(?:not|wrong)\b|(?:that|this|it) (?:isn't|wasn't) "
    r"(?:it\b|the (?:real |actual |root )?(?:cause|issue|problem|reason))|my (?:\w+ )?(?:guess|assumption|theory|"
    r"hypothesis|diagnosis|reading)\b.{0,60}\b(?:wrong|incorrect|off|mistaken)|i was wrong|"
    r"you(?:'re| are) (?:\w+ )?right\b)"
)
_REAL = (
    r"(?:the (?:real|actual|true) (?:root )?|actually,? the (?:root )?)(?:cause|issue|problem|reason|culprit|bug|fix)\b"
)
_DENIES = patterns.compile(_BUT + _TAKES_BACK, patterns.I)
"""How begins a sentence that says that what was said before is not so."""
_REVISES = patterns.compile(
    rf"{_BUT}(?:{_TAKES_BACK}|{_REAL}|(?:actually|wait|hm+|on second thought|scratch that|never ?mind)\b)", patterns.I
)
"""How begins one that, where it explains something, does so in place of what was said before."""
_LINKS = patterns.compile(
    r"\b(?:because|due to|caus(?:es|ed by|ing)|as a result|stems? from|comes? from|"
    r"since (?:the (?!last|previous|first|start)|it|we|i|there|that|this|they|`)|"
    r"(?:cause|reason|culprit) (?:is|was)|the (?:actual |real |main |underlying )?(?:issue|problem|bug)"
    r"(?: here)? (?:is|was)(?! (?:in|with|at|on)\b)|root cause|that'?s why|this is why|turns out|turned out)\b|"
    r"\b(?:cause|reason|culprit|issue|problem|bug): |때문|원인은|문제는|이유는|없어서",
    patterns.I,
)


_IN_PLACE_OF = patterns.compile(
    r"\b(?:because|since|so (?:that|the|it|they|we)|due to|to (?:avoid|prevent|ensure|match|keep)|"
    r"instead of|rather than|no longer|in place of)\b",
    patterns.I,
)


def says_why(done: str) -> bool:
    """Whether what says what was done says why, or in place of what."""
    return _IN_PLACE_OF.search(done) is not None


def _explains(sentence: str) -> bool:
    return _LINKS.search(sentence) is not None or _EXPLAINS.search(sentence) is not None


def names_of(error: ErrorOccurred, *, own: bool = False) -> frozenset[str]:
    """The names that an error's message, types, frames and files hold, without everybody's words; of a message of many
    words those alone that are its `own`: what it quotes, and what is written like a symbol."""
    symbols = _symbols(error.message)
    said = (names_within(error.message) - _COMMON) | symbols
    if own and len(said) > _SHARED:
        said = symbols
    files = (file.rpartition("/")[2] for file in error.files)
    return said | (names_within(" ".join((*error.error_types, *error.frames, *files))) - _COMMON)


_OPERAND = patterns.compile(r"[\"'`‘][^\"'`’\n]+[\"'`’]|\w*(?:[a-z][A-Z]|\w[._]\w)\w*")
_COMMON = words_of(
    "lint golangci biome eslint compile failure panic command exit output expected received want actual fatal warning "
    "undefined missing cannot read write open found true false null none nil main index test tests config settings"
)
"""Words of tools and messages that name nothing of one error."""
_SHORTEST = 16
"""Characters below which a sentence explains nothing ("I see it now!"); ten of Hangul are a sentence."""

_FENCED = patterns.compile(r"```.*?(?:```|\Z)", patterns.S)
_OPENERS = r"(?:(?:now|next|first|then|good|great|ok(?:ay)?|perfect|alright)[,.!]? +)*"
_ANNOUNCES = patterns.compile(
    _OPENERS + r"(?:(?:let me|let's|i'll|i will|i'm going to|i(?:'m| am) (?:now )?)(?: also| now| first| just)* *"
    r"(?:run|rerun|re-run|check|checking|verify|look|see|read|reading|test|continue|view|examine|find|search)\b|"
    # What says no more than that it will be mended.
    r"(?:let me|let's|i'll|i will|(?:i |we )?need to)(?: also| now)* (?:fix|address|handle|update|resolve|correct)"
    r"(?: `[^`]*`| (?:\w+ (?:lint|linter|linting|type|error|issue|warning)s?|"
    r"it|this|that|them|these|those|both|all|the|of|remaining|last|lint|linter|linting|format|formatting|type|"
    r"build|compile|tests?|files?|issues?|errors?|failures?|problems?|warnings?|two|three|few|other|now|too)\b)*[.:!]*$)|"
    r"(?:now|next|then)[,.!]? +(?:run|rerun|re-run|check|verify|test)\b|"
    r"(?:i see|i found|found) (?:the|it|an?) ?(?:issue|problem|bug)?[.!]$",
    patterns.I,
)
_NEXT_STEP = patterns.compile(
    rf"{_OPENERS}(?:so )?(?:let me|let's|i'll|i will|i(?:'m| am) (?:(?:now|also|just) )*(?:going to|\w+ing))\b",
    patterns.I,
)
_PROPOSES = patterns.compile(
    r"^need to\b|\b(?:let me|let's|(?:i|we)(?:'ll| will| would))\b|"
    r"\b(?:i|we)(?:'d)? (?:\w+ ){0,2}?(?:need|want|should|must|could)\b|\b(?:i|we) can (?:now |just |also |simply )*"
    r"(?:use|add|drop|fix|set|move|make|call|skip|rename|remove|change|replace)\b|"
    r"\bshould (?:be \w+ed to|now|just|simply)\b|"
    r"\b(?:fix|solution) (?:here |now )?(?:is|would be) (?:to|\w+ing)\b|"
    r"\b(?:simplest|easiest|cleanest|best|safest|quickest) (?:\w+ )?(?:path|way|option|approach|fix|thing)\b",
    patterns.I,
)
"""What says what is to be done."""
_LOOKS = patterns.compile(
    r"^now[,:]? \w+ing\b|\b(?:need to|want to|have to|going to|try to|let me|let's|i'll)(?: \w+){0,2} "
    r"(?:check|find|trace|see|look|understand|figure|investigate|determine|know|debug)\b",
    patterns.I,
)
"""What says what is looked for, or done, just now, whatever it comes from."""
_NAMES_FAULT = patterns.compile(r"(?:\w+,? )*?the (?:\w+ )?(?:issue|problem|cause|bug) (?:is|was)\b", patterns.I)
_RULES_OUT = patterns.compile(
    r"(?:\bnot|\b(?:is|was|are|were)n['’]t) (?:directly |actually )?(?:related|caused|due|because|an? (?:real )?bug|"
    r"the (?:same )?(?:\w+ )?(?:cause|culprit|reason|problem|issue|bug|error|failure))\b|\bruled? (?:\w+ )?out\b|"
    r"\bunrelated\b(?: to\b|\W*$)|\b(?:is|are|was|were) (?:\w+ )?unrelated\b|\bnothing to do with\b",
    patterns.I,
)
"""What says what something is not, or does not come of."""
_REPORTS = patterns.compile(
    rf"{_OPENERS}(?:(?:i|we)(?:'ve| have)? (?:(?:now|also|just|already|successfully) )*(?!need|found|used)\w+ed\b|"
    r"(?:done|fixed|finished|completed|verified|confirmed|updated|added|removed|committed)\b|"
    r"(?:all|both|everything|(?:the )?(?:\w+ )?(?:tests?|build|lint(?:er|ing)?|suite|checks?|typecheck))\b.{0,60}"
    r"\b(?:pass(?:es|ed|ing)?|succe(?:eds?|eded|ssful)|clean|green|done|complete[ds]?|in place)\b|[✅✓✔])",
    patterns.I,
)
"""How begins what says no more than what is to be done next, or how far the work is."""
_GUESSES = patterns.compile(
    r"\b(?:maybe|perhaps|let me try|might|probably|(?:may|could) be|i (?:suspect|guess|think (?:the|it|this)))\b",
    patterns.I,
)
_EXPLAINS = patterns.compile(
    r"\b"
    r"(?:the (?:actual |real |root |underlying |main )?(?:issue|problem|cause|bug|error|failure|fix|solution)s?\b"
    r"(?: here| now)? (?:is|are|was|were|comes?|came|happens?|occurs?|seems|lies)|"
    r"which means|so that|(?:fails?|failed|failing|broke|breaks) (?:as|when)|(?:needs?|has|have) to (?:be|use|have|"
    r"call|match)|should (?:be|use|have|call)|instead of|"
    r"doesn'?t (?:exist|match|have|support|include|implement|handle)|isn'?t (?:set|used|defined|exported|"
    r"available|needed)|"
    r"(?:is|was|were|are) (?:missing|undefined|unused|outdated|stale|wrong|incorrect|not (?:set|used|defined|"
    r"exported)))\b|"
    r"해야 (?:합니다|한다)|누락",
    patterns.I,
)  # fmt: skip
_GAP = patterns.compile(r"(?P<mark>[.!?。:])\s+|\n\s*")
_LABEL = patterns.compile(
    r"\W*(?:the )?(?:actual |real |root |main |underlying )?(?:cause|reason|culprit|issue|problem|bug)(?: here)?\z",
    patterns.I,
)
"""What a cause stands behind, with a colon between: it is of one sentence with it."""
_LONGEST_LABEL = 80
"""Characters of one."""
_GLUED = patterns.compile(
    r"([a-z)\]`])((?:Let me|Actually,|Wait,|However,|So (?:the|I|we|this)|Now (?:I|let)|But (?:the|I|this|that)|I need|"
    r"Looking (?:at|more)|The (?:issue|problem|test|error|fix)) )"
)
"""Where a line break between two sentences was lost."""
_BEGIN_SENTENCE = frozenset(f"{ascii_uppercase}{digits}`\"'(*-")
_QUOTES = ('"', "'")


@remembered(64, longest=16_384)
def sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text, code blocks left out, each on one line and at most 400 characters."""
    text = _FENCED.sub(" ", text) if "```" in text else text
    text = _GLUED.sub(lambda found: f"{found[1]}. {found[2]}", text)
    found = (" ".join(part.split()).strip("*-# ") for part in _parts(text))
    return tuple(part[:400] for part in found if len(part) > 12)


def _parts(text: str) -> Iterator[str]:
    """What stands between line breaks, and between the end of a sentence and what looks like another's beginning."""
    start = 0
    for gap in _GAP.finditer(text):
        end, mark = gap.end(), gap["mark"]
        after = text[end : end + 1]
        near = gap.start() - start <= _LONGEST_LABEL
        label = mark == ":" and (after in _QUOTES or (near and _LABEL.match(text, start, gap.start()) is not None))
        ends = mark and not label and (after in _BEGIN_SENTENCE or "가" <= after <= "힣")
        if ends or "\n" in gap[0]:
            yield text[start : gap.start() + len(mark or "")]
            start = end
    yield text[start:]
