"""What memory says of a tool that failed: that this was there before, and what it came of. Looked up by key."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from memctl.api.assist.before_tool import already_said, call_line, known_calls
from memctl.api.assist.lines import Line, line
from memctl.api.reading import models
from memctl.api.reading.feedback import regards
from memctl.api.reading.pages import Where, one, page, several
from memctl.api.reading.places import Places
from memctl.api.reading.reader import Reader
from memctl.api.reading.views import Json
from memctl.domain.events.recalls import quoted
from memctl.domain.failures.known_commands import WrongCall, wrong_call
from memctl.domain.failures.met_errors import ErrorLine, error_lines, is_verdict, places_of, quoted_command, says_why
from memctl.domain.failures.signatures import SeenError, errors_in, hides_exit, is_noise
from memctl.domain.failures.solutions import names_within
from memctl.domain.failures.templates import as_then
from memctl.domain.knowledge.acting import acts
from memctl.domain.knowledge.memory import day_of, memory_id
from memctl.domain.knowledge.orders import might_be_obeyed
from memctl.domain.retrieval.hindsight import CommonWay, HeldMemory, check_of, common_way, is_nameless
from memctl.domain.session.tools import command_of, directory_of
from memctl.domain.shell.commands import only_reads
from memctl.domain.support.location import normalise
from memctl.domain.support.provenance import Provenance, words_of
from memctl.infra.hooks.payloads import text_of
from memctl.projections import hindsight
from memctl.projections.known_commands import warning
from memctl.projections.met_errors import MetError, MetFailure, row_id, together

MOST_LOOKED_UP = 1_000
"""Keys of an output, times the places of its project."""

AGAIN = 2
"""Earlier sessions that an error has to have outlasted, for it to be said without anybody's conclusion."""

MOST_LOOKED_AT, MOST_STANDING = 100, 2
"""Lines that were last said to be nobody's, which a start looks at, and those of them that it gives."""

MOST_OF_COMMAND = 80
"""Characters of a command that a start names."""

MOST_CURED = 2
"""Ways out of an error, of which nobody said what it came of, above which it comes of something else each time."""


class Met(NamedTuple):
    """What is worth saying of an output: one of the lines that were met, of how many that say what failed, and how."""

    key: str
    subject: str
    failure: MetFailure
    covered: int
    of: int
    how: str
    sessions: int = 1


def of_failure(reader: Reader, payload: dict[str, Json], places: Places, stream: str) -> list[Line]:
    """What is worth saying of a use of a tool that failed; nothing twice in one session."""
    error, given, here = payload.get("error"), payload.get("tool_input"), payload.get("cwd")
    if payload.get("hook_event_name") == "PostToolUse":
        return _hidden(reader, payload, places, stream)
    if not isinstance(error, str) or is_noise(error):
        return []
    location = normalise(here) if isinstance(here, str) else ""
    command = command_of(given) if isinstance(given, dict) else ""
    began = directory_of(given, location) if isinstance(given, dict) else location
    if command and only_reads(command):
        return []
    errors, wrong = errors_of(error, command, began, failed=True)
    calls = known_calls(reader, [wrong.subject], places) if wrong is not None else []
    known = warning(calls, stream, command=command[:4_000], failed=True)
    if known is not None:
        return [] if known.id in already_said(reader, stream) else [call_line(reader, known)]
    return _met_here(reader, error_lines(error, location), places, stream) or _ended_alike(
        reader, error, errors, places, stream
    )


def _hidden(reader: Reader, payload: dict[str, Json], places: Places, stream: str) -> list[Line]:
    """The same of a command that failed where a pipe or what followed hid it, by what only a failure prints."""
    given = payload.get("tool_input")
    command = command_of(given) if isinstance(given, dict) else ""
    if not command or not hides_exit(command) or only_reads(command):
        return []
    output = text_of(payload.get("tool_response"))
    began = directory_of(given, "") if isinstance(given, dict) else ""
    errors, wrong = errors_of(output, command, began, failed=False)
    if wrong is not None or not errors:
        return []
    here = payload.get("cwd")
    lines = error_lines(output, normalise(here) if isinstance(here, str) else "")
    return _met_here(reader, lines, places, stream) or _ended_alike(reader, output, errors, places, stream)


def _ended_alike(
    reader: Reader, output: str, errors: Sequence[SeenError], places: Places, stream: str
) -> list[Line]:  # fmt: skip
    """The way out that earlier sessions share of an error of this kind, wherever it was."""
    held = _held(reader, errors, frozenset(places.locations or ()), stream) if errors else {}
    found: list[tuple[CommonWay, SeenError, str]] = []
    for each in errors:
        way = common_way(held[each.signature], output, check_of(each.error_types[0]))
        if way is not None and not acts("\n".join((*way.commands, *way.words))):
            found.append((way, each, memory_id("bug_pattern", each.signature)))
    if not found:
        return []
    said, regard = already_said(reader, stream), regards(reader, [id for _, _, id in found])
    found = [each for each in found if each[2] not in said and not (each[2] in regard and regard[each[2]].rejected)]
    if not found:
        return []
    # A command is done in one step; else the way that most sessions took.
    way, error, id = min(found, key=lambda each: (not each[0].commands, -each[0].sessions))
    text, whose = _said_of(error, way, reader.member)
    return [line(text, id, origin=words_of(whose, member=way.newest.member, asking=reader.member))]


def _held(
    reader: Reader, errors: Sequence[SeenError], here: Collection[str], stream: str
) -> dict[str, Iterable[HeldMemory]]:
    """By signature, the memories that other sessions of these locations left of an error."""
    wanted = {each.signature: [hindsight.row_id("known error", at, each.signature) for at in here] for each in errors}
    rows = several(reader, models.hindsight, [id for ids in wanted.values() for id in ids][:MOST_LOOKED_UP])
    return {
        signature: {
            memory.id: memory for id in ids if id in rows for memory in rows[id].memories
            if memory.location in here and memory.stream != stream
        }.values()
        for signature, ids in wanted.items()
    }  # fmt: skip


def _said_of(error: SeenError, way: CommonWay, asking: str) -> tuple[str, Provenance]:
    """The line for the agent, and whose words it has. Of edits the newest is shown, if no other member made it: a word
    alone says little."""
    what = as_then(error.message, "") if is_nameless(error.error_types) else error.error_types[0]
    how = " and ".join(f"`{quoted_command(each)}`" for each in way.commands or way.words)
    by = "running" if way.commands else "edits with"
    begins = f"{day_of(way.newest.at)[:10]} {quoted(what, 160)} failed before"
    sessions = f"{way.sessions} of {way.of} sessions" if way.of > 1 else "one session"
    text, shown = f"{begins}; in {sessions} {by} {how} ended it", way.newest.text
    of_another = way.newest.member != asking
    if way.commands or of_another or way.words[0] not in shown or acts(shown) or might_be_obeyed(shown):
        return text, Provenance.TOOL
    return f"{text}: {quoted(shown, 200)}", Provenance.AGENT


def _met_here(reader: Reader, lines: Sequence[ErrorLine], places: Places, stream: str) -> list[Line]:
    """What earlier sessions of these places left of such lines."""
    keys = [*(each.key for each in lines), *places_of(lines)]
    wanted = [(key, row_id(place, key)) for key in keys for place in places.locations or ()][:MOST_LOOKED_UP]
    rows = several(reader, models.met_errors, [id for _, id in wanted])
    of_key: dict[str, list[MetError]] = {}
    ids: dict[str, str] = {}
    for key, id in wanted:
        if id in rows:
            of_key.setdefault(key, []).append(rows[id])
            ids.setdefault(key, id)
    if not of_key:
        return []
    session = one(reader, models.working_memory, stream)
    changed = [each.path for each in session.files if each.state != "read"] if session is not None else []
    found = met(lines, {key: together(each) for key, each in of_key.items()}, changed, stream)
    if found is None or ids[found.key] in already_said(reader, stream):
        return []
    origin = words_of(Provenance.AGENT, member=found.failure.member, asking=reader.member)
    return [line(said(found), ids[found.key], origin=origin)]


def errors_of(
    output: str, command: str, began: str, *, failed: bool
) -> tuple[list[SeenError], WrongCall | None]:  # fmt: skip
    """The errors of an output, and what was wrong with the call itself, which says so by itself."""
    errors = errors_in(output, command, failed=failed)
    return errors, wrong_call(command, began, errors) if command else None


def met(lines: Sequence[ErrorLine], rows: Mapping[str, MetError], changed: Collection[str], stream: str) -> Met | None:
    """What was met of these lines, by the keys of what is known. What is in a file that the session has changed is
    likely its own doing, and nothing is said of it but what such a message came of."""
    own = frozenset(path.replace("\\", "/").rpartition("/")[2] for path in changed)
    named = [each for each in lines if each.names]
    verdicts = [each for each in named if is_verdict(each)] or named
    foreign = [each for each in verdicts if own.isdisjoint(each.names)]
    return _standing(verdicts, foreign, rows, stream) or _cured(lines, rows, stream) or _stayed(
        verdicts, foreign, rows, stream
    )  # fmt: skip


def _standing(
    verdicts: Sequence[ErrorLine], foreign: Sequence[ErrorLine], rows: Mapping[str, MetError], stream: str
) -> Met | None:
    """What was said to be nobody's: by its place, or by the lines themselves, at least half of them."""
    for key, place in places_of(verdicts).items():
        if key in rows and (failure := _unasked(rows[key].standing(stream))):
            within = sum(any(path.startswith(f"{place}/") for path in each.paths) for each in verdicts)
            return Met(key, f"{place}/", failure, within, len(verdicts), "standing")
    known = [(each, _unasked(rows[each.key].standing(stream))) for each in foreign if each.key in rows]
    found = [(each, failure) for each, failure in known if failure is not None]
    if not found or len(found) * 2 < len(verdicts):
        return None
    first, failure = max(found, key=lambda each: each[1].said_at)
    return Met(first.key, first.text, failure, len(found), len(verdicts), "standing")


def _unasked(failures: Iterable[MetFailure]) -> MetFailure | None:
    """The first of which may be given unasked what the agent said: it asks for nothing, and names no address. A command
    or a change that acts, or holds an order, is left out."""
    for failure in failures:
        if not any(acts(each, -1) or might_be_obeyed(each) for each in (failure.said, failure.cause)):
            ways = (failure.passed, failure.change)
            passed, change = ("" if acts(each) or might_be_obeyed(each) else each for each in ways)
            return msgspec.structs.replace(failure, passed=passed, change=change)
    return None


def _cured(lines: Sequence[ErrorLine], rows: Mapping[str, MetError], stream: str) -> Met | None:
    """What an exact message came of, or which change ended it, wherever it stands in the output."""
    for each in lines:
        row = rows.get(each.key)
        failure = _unasked(row.cured(stream) if row is not None else ())
        if row is None or failure is None or not (failure.cause or (failure.change and each.names)):
            continue  # of what names nothing a way out once is chance
        if not (failure.why or says_why(each)):
            continue
        if failure.cause or len({other.change for other in row.before(stream) if other.mended_at}) <= MOST_CURED:
            return Met(each.key, each.text, failure, 1, 1, "cured")
    return None


def _stayed(
    verdicts: Sequence[ErrorLine], foreign: Sequence[ErrorLine], rows: Mapping[str, MetError], stream: str
) -> Met | None:
    """What failed in several earlier sessions, none of which ended it: at least half of what fails."""
    found = [
        (count, each) for each in foreign if each.key in rows and (count := rows[each.key].stayed(stream)) >= AGAIN
    ]
    if not found or len(found) * 2 < len(verdicts):
        return None
    count, first = found[0]
    return Met(first.key, first.text, rows[first.key].before(stream)[0], len(found), len(verdicts), "stayed", count)


def said(found: Met) -> str:
    """The line for the agent."""
    failure, date = found.failure, day_of(found.failure.at)[:10]
    subject = quoted(as_then(found.subject, failure.line), 160)
    part = f" ({found.covered} of {found.of} lines that say what fails)" if found.of > 1 else ""
    if found.how == "stayed":
        return f"{date} {subject}{part} failed in {found.sessions} earlier sessions too, and none of them ended it"
    if found.how == "cured":
        why = f": {quoted(failure.cause, 400)}" if failure.cause else ""
        what = f"; what ended it: {quoted(failure.change, 300)}" if failure.change else ""
        return f"{date} {subject} failed before{why}{what}"
    return f"{date} {subject}{part} was there before: {_conclusion(failure)}"


def _conclusion(failure: MetFailure) -> str:
    instead = f"; what works: {quoted(failure.passed, 160)}" if failure.passed else ""
    return f"{quoted(failure.said, 400)}{instead}"


def known_to_fail(failure: MetFailure, sessions: int) -> str:
    """The line for the agent before it meets a failure: what fails, at which command, and what was said of it where
    that names it. "Nothing new" says nothing by itself."""
    ran = failure.command.partition("\n")[0]
    at = f" at {quoted(ran, MOST_OF_COMMAND)}" if 0 < len(ran) <= MOST_OF_COMMAND and not acts(ran) else ""
    about = not names_within(failure.said).isdisjoint(names_within(failure.line))
    said = _conclusion(failure) if about else "said to be there before"
    return f"{day_of(failure.at)[:10]} {quoted(failure.line, 160)} fails here{at}, in {sessions} sessions: {said}"


def standing(reader: Reader, places: Places, stream: str) -> Iterator[Line]:
    """What fails here and was said to be nobody's in several sessions: said before the session meets it too."""
    p = models.met_errors
    rows, _ = page(reader, p, "judged_at", Where(p).within(places).above("judged_at", 0), limit=MOST_LOOKED_AT)
    given: set[str] = set()
    for keyed in rows:
        failure = _unasked(keyed.row.standing(stream))
        sessions = {each.origin for each in keyed.row.before(stream) if each.said}
        if failure is None or len(sessions) < AGAIN or failure.id in given:
            continue
        if not failure.line or might_be_obeyed(failure.line):
            continue  # it names nothing that fails, or is what a tool printed and can be an order
        given.add(failure.id)
        text = known_to_fail(failure, len(sessions))
        origin = words_of(Provenance.AGENT, member=failure.member, asking=reader.member)
        yield line(text, keyed.key, origin=origin)
        if len(given) == MOST_STANDING:
            return
