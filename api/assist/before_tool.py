"""What memory says at the point of action: before a command runs, before a file is edited, as a subagent starts.

What is known of a command or a file is looked up by key, and never searched for: a tool waits for it. Memory only adds
to an agent's context here; it denies nothing and changes no command.
"""

import threading
from collections import OrderedDict, deque
from collections.abc import Collection, Iterator
from posixpath import basename

from memctl.api.assist.lines import Line, line
from memctl.api.reading import models
from memctl.api.reading.pages import Keyed, Where, one, page, several
from memctl.api.reading.places import Places
from memctl.api.reading.reader import Reader
from memctl.api.reading.views import Json
from memctl.domain.events.recalls import quoted
from memctl.domain.failures.known_commands import keys_of
from memctl.domain.knowledge.memory import day_of, memory_id
from memctl.domain.knowledge.orders import holds_orders, might_be_obeyed, only_names, what_failed
from memctl.domain.session.tools import command_of, directory_of, family_of
from memctl.domain.support.location import normalise
from memctl.domain.support.mentions import path_within
from memctl.domain.support.provenance import RIGHTS, Provenance, words_of
from memctl.projections.known_commands import KnownCommand, Warning, row_id, together, warning
from memctl.projections.verified_knowledge import VerifiedKnowledge

MOST_LOOKED_UP = 1_000
"""Keys of a command, times the places of its project."""

MOST_CLAIMS, MOST_OF_A_FILE = 200, 2
"""Verified claims of a project that are looked at for a file, and those of them that are said."""

MOST_SESSIONS, MOST_TASKS = 256, 16
"""Sessions whose subagents' tasks are known until they start, and tasks of each."""

LONGEST_KIND = 100
"""Characters that count of the name of a subagent's kind."""

SHORTEST_FILE = 6
"""Characters of a file's name that is looked for in claims."""

COMMON_FILES = frozenset(
    (
        *("index.ts", "index.js", "index.tsx", "main.go", "main.py", "main.rs", "mod.rs", "lib.rs", "__init__.py"),
        *("package.json", "readme.md", "makefile", "types.ts", "utils.ts", "utils.py", "setup.py", "config.ts"),
        *("config.py", "go.mod", "tsconfig.json", "claude.md", "agents.md", "settings.json", "settings.local.json"),
    )
)
"""Names that so many files have that a claim which names one need not mean this one."""


def before_tool(reader: Reader, payload: dict[str, Json], places: Places, stream: str) -> list[Line]:
    """What is worth saying before this use of a tool; nothing twice in one session."""
    given, here = payload.get("tool_input"), payload.get("cwd")
    tool = payload.get("tool_name")
    if not isinstance(given, dict) or not isinstance(tool, str):
        return []
    location = normalise(here) if isinstance(here, str) else ""
    family = family_of(tool)
    if family == "run":
        command = command_of(given)[:4_000]
        calls = known_calls(reader, keys_of(command, directory_of(given, location)), places)
        found = warning(calls, stream, command=command)
        lines = [call_line(reader, found)] if found is not None else []
    elif family == "edit":
        path = next((p for name in ("file_path", "notebook_path", "path") if isinstance(p := given.get(name), str)), "")
        lines = list(_of_file(reader, path_within(location, path), places)) if path else []
    else:
        return []
    said = already_said(reader, stream) if lines else frozenset()
    return [each for each in lines if each[1].id not in said]


def known_calls(reader: Reader, keys: Collection[str], places: Places) -> list[tuple[str, KnownCommand]]:
    """What the project shows of calls with these keys, each with the key of its row."""
    wanted = [(key, row_id(place, key)) for key in keys for place in places.locations or ()][:MOST_LOOKED_UP]
    rows = several(reader, models.known_commands, [id for _, id in wanted])
    known = {key: [(id, rows[id]) for name, id in wanted if name == key and id in rows] for key in keys}
    return [together(of_key) for of_key in known.values() if of_key]


def call_line(reader: Reader, found: Warning) -> Line:
    """That a call fails here, with the form that works."""
    place = found.works.directory
    where = f" in the directory {quoted(place, 100)}" if only_names(place) else ""
    # Words in quotation marks may be a sentence: then only what its message named is shown.
    failed = found.row.subject if holds_orders(found.failed.command) else found.failed.command
    said = what_failed(found.failed.message)
    ended = f" with {quoted(said, 200)}" if said else ""
    text = (
        f"{day_of(found.failed.at)[:10]} {quoted(failed, 160)} fails here{ended};"
        f" what works: {quoted(found.works.command, 160)}{where}"
    )
    shown = words_of(Provenance.TOOL, member=found.member, asking=reader.member)
    return line(text, found.id, found.odds, origin=shown)


def _of_file(reader: Reader, path: str, places: Places) -> Iterator[Line]:
    """What is verified of the project and names this file."""
    name = basename(path)
    if len(name) < SHORTEST_FILE or "." not in name or "\0" in name:
        return
    p = models.verified_knowledge
    # Whatever others said last, what may be given is looked at.
    wanted = Where(p).within(places).equal("status", "verified").holding("text", name).of_no_other(reader.member)
    rows, _ = page(reader, p, "last_seen", wanted, limit=MOST_CLAIMS)
    found = [keyed for keyed in rows if _names(keyed, path, name) and not _may_be_an_order(keyed.row)]
    for keyed in found[:MOST_OF_A_FILE]:
        text = f"{day_of(keyed.row.last_seen)[:10]} of this file: {quoted(keyed.row.text, 300)}"
        said = reader.whose(keyed.row)
        yield line(
            text, memory_id("knowledge", keyed.key), keyed.row.confidence, origin=said, settled=keyed.row.confirmed
        )


def _may_be_an_order(row: VerifiedKnowledge) -> bool:
    """Whether somebody might obey it, and no user typed it or confirmed it."""
    return not row.confirmed and RIGHTS[row.said_by].unasked == "never" and might_be_obeyed(row.text)


def _names(keyed: Keyed[VerifiedKnowledge], path: str, name: str) -> bool:
    text = keyed.row.text
    if "/" in path and path in text:
        return True
    return name.lower() not in COMMON_FILES and name in text.replace("`", " ").replace(",", " ").split()


def already_said(reader: Reader, stream: str) -> frozenset[str]:
    """Memories that were put before this session's agent."""
    row = one(reader, models.injections, stream)
    return frozenset(id for block in row.blocks for id, _ in block.memories) if row is not None else frozenset()


class Delegations:
    """What agents were about to ask of subagents that have not started yet: a subagent's start does not say its task.

    Bounded, of this process, and lost with it: then a subagent starts without recall.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: OrderedDict[str, deque[tuple[str, str]]] = OrderedDict()

    def asked(self, session: str, payload: dict[str, Json]) -> None:
        """A session is about to hand work to a subagent."""
        given = payload.get("tool_input")
        prompt = given.get("prompt") if isinstance(given, dict) else None
        if not session or not isinstance(given, dict) or not isinstance(prompt, str):
            return
        kind = given.get("subagent_type")
        with self._lock:
            tasks = self._waiting.setdefault(session, deque(maxlen=MOST_TASKS))
            self._waiting.move_to_end(session)
            tasks.append((kind[:LONGEST_KIND] if isinstance(kind, str) else "", prompt[:8_000]))
            while len(self._waiting) > MOST_SESSIONS:
                self._waiting.popitem(last=False)

    def started(self, session: str, kind: str) -> str:
        """The task of a subagent of that kind which starts in a session; empty where it is not known."""
        with self._lock:
            tasks = self._waiting.get(session)
            if not tasks:
                return ""
            task = next((each for each in tasks if each[0] == kind[:LONGEST_KIND]), tasks[0])
            tasks.remove(task)
            return task[1]
