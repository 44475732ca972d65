"""What earlier sessions built of what a prompt asks for: the files that they changed, and what came of it.

A wish for a screen or a command is mostly about files that some session made. No one piece of work that was found for
it need have changed the right ones: the sessions that were found vote, each by how much of the prompt its work holds,
and a file counts for more where its name holds words of the prompt. Who has not looked at any file yet is given what
holds a third of the prompt; who is at work mostly goes on with that, and is given only what holds most of it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from posixpath import basename, splitext

from memctl.api.assist.before_tool import COMMON_FILES
from memctl.api.assist.conversations import whole_answer
from memctl.api.assist.lines import Line, line
from memctl.api.reading import models
from memctl.api.reading.feedback import regards
from memctl.api.reading.pages import several
from memctl.api.reading.reader import Reader
from memctl.api.reading.views import Found
from memctl.domain.events.recalls import quoted
from memctl.domain.knowledge.memory import day_of, distinctive, is_chore, is_steering
from memctl.domain.knowledge.orders import might_be_obeyed, only_names, unobeyed
from memctl.domain.language.documents import named
from memctl.domain.retrieval.answering import passage, said_in, weights
from memctl.domain.support.mentions import path_within
from memctl.domain.support.provenance import Provenance, words_of
from memctl.domain.support.text import short_addresses, tokens
from memctl.projections.memory_rows import Memory

MOST_FILES, MOST_BESIDE, PASSAGE, TITLE = 3, 2, 300, 100
"""Files that are named of earlier work and beside it, and characters of what came of it and of what was asked."""

FOUND = 0.05
"""The score from which on a search has found earlier work, and not only the words of a file's name."""

LEAST_WORDS, OF_A_CHORE = 3, 8
"""Words of a prompt that says which work it means; and of one that asks to commit or push, and for more than that: who
commits what is done is past the files."""

BY_NAME, BESIDE = 2.0, 0.7
"""How many times what the name of a file holds of a prompt counts, and the share of the first file's votes from which
on one is named that several sessions' other work changed."""

OPENING, SPELT, HELD, AT_WORK = 0.35, 0.15, 0.40, 0.65
"""The share of a prompt from which on work is meant. Where the session looked at no file yet: by text and file name,
and where the prompt spells out the name of such a file. Where it did: by text, and by both."""


def earlier_work(
    reader: Reader, prompt: str, found: Sequence[Found], said: Collection[str], at_hand: Collection[str]
) -> Iterator[Line]:
    """The earlier work that a prompt goes on with, at most one line: none where the session is at those files, or the
    prompt names them. `said` are memories that the session was given, `at_hand` the files that it looked at."""
    prompt = short_addresses(prompt[:4_000])
    weight = weights(prompt, [frozenset(tokens(each.text)) for each in found])
    enough = len(distinctive(prompt) - _OF_ANY) >= (OF_A_CHORE if is_chore(prompt) else LEAST_WORDS)
    worked = _worked(reader, found) if enough else []
    if not worked:
        return
    votes = voted([row for _, row in worked], weight)
    each, row = max(worked, key=lambda one: (round(bearing(one[1], weight), 2), one[1].kind == "episode"))
    own = sorted(dict.fromkeys(row.files), key=lambda file: -votes[named(file)][1])[:MOST_FILES]
    at_them = any(named(file) in at_hand for file in own)
    if each.score < FOUND or each.id in said or at_them or not is_meant(row, own, weight, begun=bool(at_hand)):
        return
    least = BESIDE * votes[named(own[0])][1]
    beside = [
        file
        for file, count, sessions in votes.values()
        if count >= least and sessions > 1 and not {file, named(file)} & {*row.files, *at_hand}
    ][:MOST_BESIDE]
    # What came of it is said where it names the file, too.
    wanted = {**weight, basename(own[0]).lower(): max(weight.values())}
    files, more = ([at for file in paths if (at := _within(row, file, prompt))] for paths in (own, beside))
    if files and (text := _text_of(reader, row, wanted, files, more)):
        origin = words_of(Provenance.AGENT, member=row.member, asking=reader.member)
        yield line(text, row.id, each.score, each.class_, origin=origin, by="files")


def _text_of(
    reader: Reader, row: Memory, wanted: Mapping[str, float], files: Sequence[str], more: Sequence[str]
) -> str:
    """What is said of earlier work; empty where neither what it was for nor what came of it may be."""
    came = passage([said_in(unobeyed(_came_of(reader, row)))], wanted, PASSAGE).text
    asked = _asked(row)
    if not came and not asked:
        return ""
    text = f"{day_of(row.last_at)[:10]} earlier work{asked} changed {quoted(', '.join(files), 300)}"
    text += f", work like it {quoted(', '.join(more), 200)}" if more else ""
    return text + (f"; the agent said: {quoted(came, PASSAGE)}" if came else "")


def _came_of(reader: Reader, row: Memory) -> str:
    """What a turn answered, and of an episode what was solved and decided."""
    if row.kind == "turn":
        return whole_answer(reader, row)
    lines = row.text.split("\n")[1:]
    return "\n".join(each for each in lines if not each.startswith(("Outcome: ", "Files: ")))


def _asked(row: Memory) -> str:
    """What the work was for, where nobody could take that for an order."""
    return "" if might_be_obeyed(row.title) or is_steering(row.title) else f" ({quoted(row.title, TITLE)})"


def _within(row: Memory, file: str, prompt: str) -> str:
    path = path_within(row.location, file)
    return path if only_names(path) and path not in prompt else ""


def _worked(reader: Reader, found: Sequence[Found]) -> list[tuple[Found, Memory]]:
    """Those that changed files, each with its row, and without those that were rejected or corrected."""
    rows = several(reader, models.memories, [each.id for each in found if each.kind in ("turn", "episode")])
    rejected = {id for id, each in regards(reader, list(rows)).items() if each.rejected}
    rejected |= {id for id, row in rows.items() if row.kind == "turn" and row.outcome}
    return [(each, rows[each.id]) for each in found if each.id in rows.keys() - rejected and rows[each.id].files]


def voted(rows: Sequence[Memory], weight: Mapping[str, float]) -> dict[str, tuple[str, float, int]]:
    """Each file that these changed, with its votes and the sessions they are of; first those for which sessions that
    hold much of a prompt speak."""
    votes: dict[str, dict[str, float]] = defaultdict(dict)
    paths: dict[str, str] = {}
    for row in rows:
        worth, session = _share(row.text, weight) ** 2, row.sessions[0] if row.sessions else row.id
        for path in row.files:
            of_one = votes[named(path)]
            of_one[session] = max(of_one.get(session, 0.0), worth)
            paths.setdefault(named(path), path)
    count = {name: sum(of.values()) * (1 + BY_NAME * _named(paths[name], weight)) for name, of in votes.items()}
    return {name: (paths[name], count[name], len(votes[name])) for name in sorted(count, key=lambda name: -count[name])}


def is_meant(row: Memory, files: Sequence[str], weight: Mapping[str, float], *, begun: bool) -> bool:
    holds, both = _share(row.text, weight), bearing(row, weight)
    if weight.keys().isdisjoint(tokens(" ".join((row.title, *map(basename, row.files))))):
        return False
    if begun:
        return holds >= HELD and both >= AT_WORK
    return both >= OPENING or (both >= SPELT and any(_spelt(file, row, weight) for file in files))


def bearing(row: Memory, weight: Mapping[str, float]) -> float:
    """How much of a prompt the text of earlier work holds, and the best named of its files."""
    return _share(row.text, weight) + BY_NAME * max(_named(file, weight) for file in row.files)


def _spelt(file: str, row: Memory, weight: Mapping[str, float]) -> bool:
    """Whether a prompt and what the work was for hold every word of a file's name."""
    words = _name(file)
    return bool(words) and weight.keys() >= words and words <= set(tokens(row.title))


def _named(file: str, weight: Mapping[str, float]) -> float:
    return _share(" ".join(_name(file)), weight)


def _name(file: str) -> frozenset[str]:
    """The words of a file's name that may say what it is of."""
    name = basename(file)
    words = tokens(splitext(name)[0]) if name.lower() not in COMMON_FILES else []
    return frozenset(words[1:] or words) - _OF_ANY


_OF_ANY = frozenset(tokens("test tests spec util utils helper helpers common"))
"""Words that names of files of any subject have."""


def _share(text: str, weight: Mapping[str, float]) -> float:
    """0 to 1: how much of the weight the words of a text hold."""
    held = frozenset(tokens(text))
    return sum(each for word, each in weight.items() if word in held) / max(sum(weight.values()), 1e-9)
