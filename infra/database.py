"""Connections to Postgres."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.adapt import Buffer, Loader
from psycopg.pq import Format

from memctl.domain.errors import MemctlError

Connection = psycopg.Connection[tuple[Any, ...]]


class DatabaseUnavailable(MemctlError):
    """Postgres does not answer."""


class _JsonbAsBytes(Loader):
    """jsonb as the bytes of its JSON text: rows are decoded by msgspec, straight into their types."""

    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        return bytes(data)[1:]


class _JsonbTextAsBytes(Loader):
    format = Format.TEXT

    def load(self, data: Buffer) -> bytes:
        return bytes(data)


def plain_url(url: str) -> str:
    """The URL as libpq reads it (SQLAlchemy's `postgresql+psycopg://` is understood too)."""
    head, separator, rest = url.partition("://")
    return head.split("+", 1)[0] + separator + rest


def connect(url: str, *, autocommit: bool = True, name: str = "memctl", statement_timeout_ms: int = 0) -> Connection:
    """A connection that answers in binary, with time limits that keep a lost client from stalling the log's mark.

    Raises: DatabaseUnavailable, with libpq's reason.
    """
    options = (
        "-c idle_in_transaction_session_timeout=60s -c lock_timeout=30s -c timezone=UTC -c synchronous_commit=on"
        f" -c statement_timeout={statement_timeout_ms}"
    )
    try:
        connection = psycopg.connect(
            plain_url(url),
            autocommit=autocommit,
            application_name=name,
            options=options,
            cursor_factory=psycopg.Cursor,
            connect_timeout=10,
            keepalives_idle=30,
        )
    except psycopg.OperationalError as problem:
        raise DatabaseUnavailable(
            f"Postgres does not answer: {str(problem).strip()}",
            hint="start memctl with `memctl up`, or check MEMCTL_DATABASE_URL",
        ) from problem
    connection.adapters.register_loader("jsonb", _JsonbAsBytes)
    connection.adapters.register_loader("jsonb", _JsonbTextAsBytes)
    return connection
