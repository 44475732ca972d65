"""What an agent found to be so, read out of its answers: how a named thing is, with why, or in contrast to what.

An answer that nobody finds fault with mostly holds. What it says of the work at hand, as what was run, committed or is
to come, is over with the work; what is supposed or advised was not found.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from memctl.domain.failures.explanations import guesses, sentences
from memctl.domain.language.hypotheses import causes_in
from memctl.domain.language.summaries import says_done, says_words
from memctl.domain.shell.programs import words_of
from memctl.domain.support import patterns
from memctl.domain.support.bounded import one_line
from memctl.domain.support.remembered import remembered

MOST = 3
"""Findings that are taken from one answer."""

_SHORTEST, _LONGEST = 45, 360
"""Characters of a finding."""

_NAMED = patterns.compile(r"[\"'`‘][^\"'`’\n]+[\"'`’]|\w*(?:[a-z][A-Z]|\w[._]\w|[A-Z]{3}|[A-Z]\d)\w*")
"""What is written like a name of code, or quoted."""
_WHY = patterns.compile(
    r"\b(?:because|due to|since (?:the|its?|there|that|they|an?|`)|so (?:that|both|all|each|every|neither|no|only|the|"
    r"it|they|`)|to (?:avoid|prevent|ensure|guarantee)|prevents|avoids|ensures|guarantees|instead of|rather than|"
    r"no longer|which (?:means|is why|lets|allows|makes|prevents)|(?:that|this)(?:['’]s| is) why|"
    r"the (?:real |actual |root |main )?(?:reason|cause|issue|problem|catch|trick|difference) (?:is|was)|"
    r"key (?:insight|finding|point|difference)|turns? out|by design|by default|on purpose|intentional(?:ly)?|"
    r"deliberate(?:ly)?|not (?:needed|required|supported|possible|necessary)|built[ -]in|regardless|"
    r"even (?:if|when|though)|unless|except|only|never|always|must|cannot|fall(?:s|ing)? back|"
    r"(?:can|do|does|is|are|was|were)(?:n['’]t| not))\b|"
    r"\bnot [^.;]{3,60}\bbut\b|(?:,|—) not\b|때문|대신|따라서",
    patterns.I,
)
"""What says why something is so, in contrast to what, or within which bounds."""

_OF_WORK = patterns.compile(
    # What was run, seen or handed over just now, and who did it.
    r"\b(?:test\w*|\w+_test|pass(?:es|ed|ing)?|lint\w*|typecheck|verif(?:y|ies|ied)|"
    r"committed|pushed|pushing|rebas\w+|cherry-pick\w*|stash\w*|(?:un)?staged|untracked|PRs?|pull requests?|"
    r"complete|findings?|pre-existing|still|remaining|phase \d|step \d|the (?:todo|comment|content|wording|summary)|"
    r"intro|paragraphs?|sentences?|punchlines?|"
    r"(?:this|your|our|my|last|previous|failed) (?:\w+ )?(?:branch|changes?|commit|diff|run|session|plan|comment|"
    r"review|fix)|I|me|my|mine|you|your|yours|we|us|our|let['’]s)\b|"
    r"I['’]|(?:[^(]|^)\blines? \d|\[[^\]\n]*\]\(|[✅❌✓✗→❯]",
    patterns.I,
)
_NOT_FOUND = patterns.compile(
    # What is advised, or comes if something else does.
    r"\b(?:should|could|would|might|may|probably|likely|seem\w*|appear\w*|presumably|apparently|recommend\w*|"
    r"suggest\w*|options?|alternativ\w+|consider\w*|propos\w+|(?:clean|simpl|easi|safe|good|bett|b)est|cleaner|"
    r"simpler|easier|better|want|would like|strong\w* hypothesis|suspicion|assum\w+|later|going to|"
    r"about to|eas(?:y|ily)|needs? (?:to|\w+ing)|no longer (?:needed|used)|unused|"
    r"old \w+|earlier|previous\w*|silently)\b",
    patterns.I,
)
_WRONG = patterns.compile(
    r"the (?:\w+ ){0,2}(?:cause|issue|problem|bug|errors?|failures?)\b|.{0,40}\broot cause\b", patterns.I
)
"""How begins what says what had been wrong."""
_LEANS = patterns.compile(
    r"(?:this|that|it|its|these|those|they|there|he|she|here|now|also|so|but|and|or|which|then|otherwise|however|"
    r"additionally|instead|only|note|yes|no|if|what|same|different|the same|both|either|one|another|all \d+|"
    r"most of|makes sense|done|good|great|"
    r"for (?:example|instance|now|each|every))\b|\d+[.)]|[|+>=<({\[]|because\b",
    patterns.I,
)
"""How begins what leans on the sentence before it, or is no sentence."""
_LEANS_ON = patterns.compile(
    r"(?:this|that|it|its|these|those|they|so|which|instead|otherwise|because|not)\b", patterns.I
)
"""How begins what belongs to the sentence before it."""
_POINT = patterns.compile(r"(?:[-*•]|\d{1,2}[.)])\s+(?=\S)")
_LABELLED = patterns.compile(r"\s*(?:#|\*\*[^*]+\*\*)")
_FENCED = patterns.compile(r"```.*?(?:```|\Z)", patterns.S)
_ORDERS = words_of(
    "add adjust apply append bump call change check clean combine commit convert copy create declare delete drop "
    "enable ensure export extend extract fix follow get guard handle implement import include inline install keep "
    "leave let limit make mark merge move name open pass prefer put read refactor register remove rename replace "
    "require reset restore return reuse rewrite run set show skip split start stop store switch treat try update use "
    "using verify wire wrap write avoid neuter uses checks shows returns verifies sets reads writes calls creates adds "
    "removes makes keeps supports handles includes provides covers tracks works preserved"
)
"""How begins what is to be done, or what does not say of what it is so."""


_ASKED = 1_500
"""Characters of a prompt in which a question is looked for."""
_SENTENCE = patterns.compile(r"[^.?!\n]+(?:[.?!]+[^\s.?!][^.?!\n]*)*[.?!]*")
_ASKS = patterns.compile(
    r"\s*(?:(?:so|ok(?:ay)?|and|but|also|hm+|well|wait|ah|just|yes|no|q)[,.: ]+)*(?:(?:why|what|when|where|which|who|"
    r"how|is|are|was|were|does|do|did|has|have|isn['’]t|aren['’]t|doesn['’]t|don['’]t)\b|"
    r"(?:can|could) (?:it|this|that|we|i)\b)[^?]*\?|.*(?:까요?|나요|인가요?|는지)\s*\?",
    patterns.I,
)
_FOR_ADVICE = patterns.compile(
    r"\b(?:should|shall|would|recommend\w*|suggest\w*|options?|ideas?|thoughts?|think|believe|opinion|best|better|"
    r"worth|next|your|you)\b",
    patterns.I,
)


class Finding(NamedTuple):
    text: str
    of_work: bool
    """Whether it says what was done, or what had been wrong: then it is as good as the work."""


@remembered(128, longest=16_384)
def found_in(answer: str) -> tuple[Finding, ...]:
    """What an answer says was found, or done and why, in its own words and order, each with what it says that of."""
    causes = [each.text for each in causes_in(answer)]
    units = dict.fromkeys(said for unit in _units(answer) if (said := _settles(unit)))
    found = (each for each in units if not any(cause in each for cause in causes))
    return tuple(map(_finding, islice(found, MOST)))


def _finding(said: str) -> Finding:
    done = says_done(said, sure=True)
    return Finding(f"{'Done' if done else 'Found'}: {said}", done or _WRONG.match(said) is not None)


@remembered(64)
def asks_how_it_is(prompt: str) -> bool:
    """Whether somebody asks how something is, and not for advice: what answers that was looked up."""
    return any(_ASKS.match(each) and not _FOR_ADVICE.search(each) for each in _SENTENCE.findall(prompt[:_ASKED]))


def _units(answer: str) -> Iterator[list[str]]:
    """The sentences of an answer that belong together: a point of a list with what stands further in below it, a short
    list with the line that names what it is of, and of a paragraph each sentence with those that lean on it."""
    head, points, depth = list[str](), list[list[str]](), 0
    for line in (_FENCED.sub("\n", answer) if "```" in answer else answer).splitlines():
        if not line.strip():
            continue
        said = [each.replace("**", "") for each in sentences(line)]
        indented = len(line) - len(line.lstrip())
        if _POINT.match(line.lstrip()):
            if points and indented > depth:
                points[-1] += said
            else:
                points.append(said)
                depth = indented
            continue
        yield from _joined(head, points)
        head, points = list[str](), list[list[str]]()
        for each in said:
            if head and not (_LABELLED.match(line) or _LEANS_ON.match(each)):
                yield head
                head = []
            head.append(each)
    yield from _joined(head, points)


def _joined(head: list[str], points: list[list[str]]) -> Iterator[list[str]]:
    """A list with the line before it, where that names what it is of and both are short; else each by itself."""
    whole = [*head, *(each for point in points for each in point)]
    if head and head[-1].endswith(":") and _NAMED.search(head[-1]) and sum(map(len, whole)) < _LONGEST:
        yield whole
    else:
        yield from (head, *points)


def _settles(unit: list[str]) -> str:
    """What a unit settles, on one line; empty where it says neither why nor in contrast to what."""
    if not unit or _LEANS.match(unit[0]):
        return ""
    first = unit[0].split(maxsplit=1)[0]
    if first.lower() in _ORDERS and not first.isupper():
        return ""
    kept = [each for number, each in enumerate(unit) if _holds(each, head=not number)]
    if kept[:1] != unit[:1] or not any(map(_WHY.search, kept)):
        return ""
    said = ""
    for each in kept:
        if said and len(said) + len(each) >= _LONGEST:
            break
        said = f"{said} {each}" if not said or said[-1] in ".:!" else f"{said}; {each}"
    said = one_line(said.strip(), _LONGEST).rstrip(":")
    held = len(said) >= _SHORTEST and _NAMED.search(said) and _WHY.search(said) and says_words(said)
    return said if held else ""


def _holds(sentence: str, *, head: bool = False) -> bool:
    """Whether a sentence says what is so beyond the work at hand. At the head of others it may only name the matter."""
    if sentence.count("`") % 2 or sentence.count(")") != sentence.count("("):
        return False
    about = _OF_WORK.search(sentence) or _NOT_FOUND.search(sentence) or guesses(sentence)
    return not (about or sentence[-1:] == "?" or (sentence[-1:] == ":" and not head))
