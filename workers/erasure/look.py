"""Whose look it is: what whoever erases may find out about a database and a disk that others share.

Who erases chooses the words, so whatever a receipt says of a place is an answer. All that looks for something forgotten
is handed a `Look`, and asks it for the rows and files that it may see: a new table or file is nobody's but the owner's
until a column says of which space its rows are.
"""

from pathlib import Path

import msgspec
from psycopg import sql

from memctl.infra.database import Connection
from memctl.infra.settings_model import Settings


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """A look out of one space. `owner`: of who has the machine; else of a key, which opens that space and no more."""

    space_id: int
    space: str
    owner: bool
    data_dir: Path
    home: str
    """The space of the deliveries that name none: that of this machine's door."""

    @classmethod
    def of_owner(cls, settings: Settings, space_id: int, space: str = "") -> "Look":
        """That of the owner; out of the settings' space, where no other is named."""
        home, data_dir = settings.space, settings.data_dir
        return cls(space_id=space_id, space=space or home, owner=True, data_dir=data_dir, home=home)

    def as_key(self) -> "Look":
        """What a key of the space sees of it."""
        return msgspec.structs.replace(self, owner=False)

    def rows(self, connection: Connection, table: str) -> sql.Composable | None:
        """The condition of the rows of a table that are looked at: those of the space. What is of no space the owner
        sees. None: nothing is."""
        match _column_of_space(connection, table):
            case "space_id":
                return sql.SQL("space_id = {}").format(sql.Literal(self.space_id))
            case "space":
                return sql.SQL("space = {}").format(sql.Literal(self.space))
            case _:
                return sql.SQL("true") if self.owner else None

    def all_rows(self) -> sql.Composable:
        """The condition of all rows that it sees of what is recorded and folded, of its space and others."""
        return sql.SQL("true") if self.owner else sql.SQL("space_id = {}").format(sql.Literal(self.space_id))

    def others_rows(self) -> sql.Composable | None:
        """The condition of what other spaces hold, in a table of what was folded; None: nothing is looked at."""
        return sql.SQL("space_id <> {}").format(sql.Literal(self.space_id)) if self.owner else None

    def means(self, space: str | None) -> bool:
        """Whether a delivery is of the space, by what its header names; one without a header (None) is the owner's."""
        return self.owner if space is None else (space or self.home) == self.space

    def called(self, file: Path) -> str:
        """A file as the receipt names it."""
        return f"the file {file}" if self.owner else "a file that waits on the server"


def _column_of_space(connection: Connection, table: str) -> str:
    """The column that says of which space a row is; empty where none does."""
    row = connection.execute(
        "SELECT max(attname) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
        " WHERE c.relnamespace = 'memctl'::regnamespace AND c.relname = %s AND a.attname IN ('space_id', 'space')"
        " AND NOT a.attisdropped",
        [table],
    ).fetchone()
    return str(row[0] or "") if row else ""
