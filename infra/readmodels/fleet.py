"""Which rules the workers of a database fold by. Each says so by a lock that it shares for as long as it lives.

Machines whose code or libraries differ, of one version, would replace each other's read models for ever. So one that
differs from what is live waits while a worker of those rules lives.
"""

from contextlib import suppress

from memctl.infra.database import Connection
from memctl.infra.readmodels import fingerprint as rules
from memctl.infra.readmodels import generations

LOCK = 0x72756C65
"""First half of the advisory locks by which workers say what they fold by ("rule"); the second is of its fingerprint.
"""


def join(connection: Connection) -> None:
    """Say by which rules this process folds, until the connection ends."""
    with suppress(rules.RulesChanged):  # a worker whose files have changed ends
        connection.execute("SELECT pg_advisory_lock_shared(%s, %s)", [LOCK, _number(rules.fingerprint())])


def differs(connection: Connection) -> bool:
    """Whether the live read models are of other rules than this process's, and made by no older memctl: those are
    replaced by whoever is newer."""
    return generations.stale(connection) and not generations.made_by_older(connection)


def leads(connection: Connection) -> bool:
    """Whether a worker lives that folds by the rules of the live read models, where those are not this process's."""
    live = generations.live(connection)
    others = generations.fingerprints(connection, live.stage1, live.stage2) - {rules.fingerprint()}
    found = connection.execute(f"{_LIVING} AND l.objid::bigint = ANY(%s)", [LOCK, [_oid(each) for each in others]])
    return found.fetchone() is not None


def waiting(connection: Connection) -> list[str]:
    """Addresses of workers that fold by other rules than those of the live read models ("here" over a socket), where
    one lives that folds by those."""
    live = generations.live(connection)
    leading = [_oid(each) for each in generations.fingerprints(connection, live.stage1, live.stage2)]
    rows = connection.execute(_LIVING, [LOCK]).fetchall()
    found = sorted({address or "here" for address, number in rows if number not in leading})
    return found if any(number in leading for _, number in rows) else []


_LIVING = (
    "SELECT host(a.client_addr), l.objid::bigint FROM pg_locks l JOIN pg_stat_activity a USING (pid)"
    " WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.classid::bigint = %s"
    " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


def _oid(fingerprint: str) -> int:
    """The second half of the lock, as Postgres lists it: the first 32 bits of the fingerprint, or of its text."""
    try:
        return int(fingerprint[:8], 16)
    except ValueError:
        return int.from_bytes(fingerprint.encode()[:4].ljust(4), "big")


def _number(fingerprint: str) -> int:
    found = _oid(fingerprint)
    return found - (1 << 32) if found >= 1 << 31 else found
