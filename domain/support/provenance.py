"""Who said a thing, and what it may become for that: one type, from the event to the line that an agent is given."""

from enum import StrEnum
from typing import Literal, NamedTuple


class Provenance(StrEnum):
    """Where words come from."""

    USER_TYPED = "user_typed"
    MEMBER = "member"
    USER_PASTED = "user_pasted"
    CLIENT = "client"
    AGENT = "agent"
    SUBAGENT = "subagent"
    TOOL = "tool"
    WEB = "web"
    FILE = "file"
    HISTORY = "history"
    IMPORT = "import"


Unasked = Literal["everywhere", "in its project", "to its member", "never"]


class Rights(NamedTuple):
    """What words of one origin may become."""

    words: str
    """How people and agents are shown the origin."""
    level: Literal[0, 2, 3]
    """The highest level of a claim that no person has confirmed; 0: it makes no claim."""
    trust: int
    """Which of two claims that contradict each other stands; `PROVED` is that of a run that passed."""
    as_users: bool
    """May be worded as the user's."""
    unasked: Unasked
    """Where a hook may give it to an agent, before a person has confirmed it."""
    crosses: bool
    """May hold in every project."""
    counts: bool
    """A session that says it is a source of its own."""


PROVED = 3
"""Trust in what a run that passed shows."""

RIGHTS: dict[Provenance, Rights] = {
    Provenance.USER_TYPED: Rights("said by you", 3, 4, True, "everywhere", True, True),
    Provenance.MEMBER: Rights("said by a member of the team", 3, 2, False, "to its member", False, True),
    Provenance.USER_PASTED: Rights("in a prompt", 0, 0, False, "never", False, False),
    Provenance.CLIENT: Rights("put into a prompt by the client", 0, 0, False, "never", False, False),
    Provenance.AGENT: Rights("written by an agent", 2, 1, False, "never", False, False),
    Provenance.SUBAGENT: Rights("written by a subagent", 2, 1, False, "never", False, False),
    Provenance.TOOL: Rights("shown by the work", 3, 2, False, "in its project", True, True),
    Provenance.WEB: Rights("from a web page", 2, 1, False, "never", False, False),
    Provenance.FILE: Rights("from a file", 2, 1, False, "never", False, False),
    Provenance.HISTORY: Rights("from the project's history", 0, 1, False, "in its project", False, False),
    Provenance.IMPORT: Rights("imported from another memory", 2, 2, False, "never", True, False),
}
"""The one place that says what each origin may become. docs/security.md has this table; a test compares them."""


def trust_of(said_by: Provenance, *, proved: bool = False) -> int:
    """Trust in an origin, or in a run that proved what it said."""
    return PROVED if proved else RIGHTS[said_by].trust


def words_to_all(said_by: Provenance) -> str:
    """An origin as it is written where nobody knows who will read it."""
    return RIGHTS[said_by].words.replace("by you", "by the user")


OF_THE_TEAM = " of the team"
"""How a member's origin ends."""


def words_of(said_by: Provenance, *, confirmed: bool = False, member: str = "", asking: str = "") -> str:
    """An origin as it is shown to the member `asking` (empty: the owner); `member` said it, or it came through
    that member's key, `confirmed` by a person."""
    words = RIGHTS[said_by].words
    if said_by is Provenance.MEMBER and member:
        words = "said by you" if member == asking else f"said by {member}{OF_THE_TEAM}"
    elif member and member != asking:
        words = f"{words} of {member}"
    if confirmed and not RIGHTS[said_by].as_users:
        words = f"{words}, confirmed by you"
    if asking and member != asking:
        words = words.replace("by you", "by the owner")
    elif asking:
        words = words.replace(", confirmed by you", ", confirmed by the owner")
    return words


IMPORTED = "import"
"""The actor of what came from somebody else's memory."""
CLIENT = "system"
"""The actor of what a client does by itself, and of a prompt whose text it had from a file."""


_MEMBER, _AGENT, _MEMCTL = "member", "agent", "memctl"
_KEYED = (_MEMBER, _AGENT, CLIENT, IMPORTED)
"""Who may speak through a key."""
_THROUGH = ":"
"""Stands between who spoke and the member through whose key it came."""
_USERS = ("user", "tool")
"""Actors of what the user says: prompts, and answers and refusals, which stand in a tool's result."""
LONGEST_NAME = 60
"""Characters of a member's name."""
LONGEST_ACTOR = LONGEST_NAME + 10
"""Characters of an actor."""


def spoken_through(actor: str, key: str) -> str:
    """The actor of what came through a key: who says there that they are the user, or a member, and what the user
    answered and refused there, is the key's member; an agent or a client is that member's."""
    role = _MEMBER if actor in _USERS else _role(actor)
    return f"{role if role in _KEYED else _AGENT}{_THROUGH}{member_called(key)}"


def known_actor(actor: str) -> str:
    """An actor as the log holds it, where it stays when the event is emptied: whoever memctl does not know by that
    name is an agent, and a member's name is one."""
    role, keyed, key = actor.partition(_THROUGH)
    if keyed and role in _KEYED:
        return f"{role}{_THROUGH}{member_called(key)}"
    return actor if actor in (*_USERS, *_KEYED[1:], _MEMCTL) else _AGENT


def unattended(actor: str) -> str:
    """The actor of an event where no person is known to sit: what would be the user's word is an agent's."""
    if member := member_of(actor):
        return f"{_AGENT}{_THROUGH}{member}"
    return _AGENT if actor in _USERS else actor


def is_persons(actor: str) -> bool:
    """Whether an event may hold a person's words: the user's, or a member's."""
    return actor in _USERS or bool(member_of(actor))


def member_called(key: str) -> str:
    """The name of the member whose key is called so."""
    return " ".join("".join(char for char in key if char.isprintable()).split())[:LONGEST_NAME] or "?"


def through(actor: str) -> str:
    """The member through whose key an actor's words came; empty where this machine heard them."""
    return actor.partition(_THROUGH)[2]


def of_client(actor: str) -> bool:
    """Whether a client by itself is the actor, whoever delivered it."""
    return _role(actor) == CLIENT


def _role(actor: str) -> str:
    return actor.partition(_THROUGH)[0]


def member_of(actor: str) -> str:
    """The name of the member who is the actor; empty for anybody else."""
    return through(actor) if _role(actor) == _MEMBER else ""


def given_unasked(said_by: Provenance, *, confirmed: bool, member: str = "", asking: str = "") -> bool:
    """Whether a claim of that origin may be given to an agent that did not ask: the agent of the member `asking`, or of
    the owner."""
    if confirmed or RIGHTS[said_by].as_users:
        return True
    return RIGHTS[said_by].unasked == "to its member" and bool(member) and member == asking


def by_actor(actor: str) -> Provenance:
    """Who made a statement or a note: a person, where the door knows one for the actor; else an agent."""
    return attributed(Provenance.USER_TYPED if actor == "user" or member_of(actor) else Provenance.AGENT, actor)


def attributed(said_by: Provenance, actor: str) -> Provenance:
    """The origin of words that came with an event of this actor. The user of another memory is not this one's user, nor
    is a member of a team."""
    if _role(actor) == IMPORTED:
        return Provenance.IMPORT
    if said_by is not Provenance.USER_TYPED or actor in _USERS:
        return said_by
    if of_client(actor):
        return Provenance.CLIENT
    return Provenance.MEMBER if member_of(actor) else Provenance.AGENT


def table() -> str:
    """The table in Markdown."""
    head = (
        "origin", "shown as", "highest level unconfirmed", "worded as the user's", "given unasked",
        "may hold in every project", "its sessions count",
    )  # fmt: skip
    lines = [f"| {' | '.join(head)} |", f"| {' | '.join('---' for _ in head)} |"]
    for origin, may in RIGHTS.items():
        level = f"L{may.level}" if may.level else "a record, no claim"
        cells = (f"`{origin}`", may.words, level, _yes(may.as_users), may.unasked, _yes(may.crosses), _yes(may.counts))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _yes(given: bool) -> str:
    return "yes" if given else "no"
