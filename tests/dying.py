"""Processes that are killed, or stopped, when their k-th statement has been answered.

They are forked from a process that has everything imported and no threads, so that one costs some milliseconds.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from data_dirs import used
from draining import catch_up
from embedding import OTHERS, Signs
from events import prompt
from vector_server import die_with_parent

from memctl.api.checks import backups
from memctl.api.erasure import scope
from memctl.api.reading.caller import OWNER
from memctl.api.reading.reader import reader_of
from memctl.api.write import importing
from memctl.api.write import ingest as ingesting
from memctl.api.write.ingest_writer import IngestWriter
from memctl.infra.backup import archive, copies
from memctl.infra.database import connect
from memctl.infra.log import migrate as migrations
from memctl.infra.log.append import append
from memctl.infra.readmodels import generations
from memctl.infra.settings import load_settings
from memctl.infra.vectors import models as vector_models
from memctl.infra.vectors import store
from memctl.workers.erasure import forgetting, retention
from memctl.workers.folding.drain import Drainer
from memctl.workers.moving import space_move
from memctl.workers.rebuild import replay as replaying
from memctl.workers.vectors.outbox_publisher import DriftScan, OutboxPublisher, drop_leftovers, switched

Act = Callable[[str], None]
"""What a process does to the database under a URL: one of the functions below."""

EXAMPLE = Path(__file__).parents[1] / "infra" / "example" / "session.jsonl"
STORE, _STATEMENTS = "store.jsonl", "statements"
NEVER = 1 << 40
"""More statements than anything takes."""
FEW = [prompt(number) for number in range(3)]


def append_one_by_one(url: str) -> None:
    with connect(url) as connection:
        for event in FEW:
            append(connection, 1, [event])


def append_at_once(url: str) -> None:
    with connect(url) as connection:
        append(connection, 1, FEW)


def ingest_the_example(url: str) -> None:
    ingesting.BATCH = 12
    with IngestWriter(load_settings(database_url=url)) as intake:
        ingesting.ingest(intake, [EXAMPLE])


def migrate(url: str) -> None:
    migrations.STEP = 40
    migrations.migrate(url)


def drain(url: str) -> None:
    catch_up(Drainer(url))


def replay(url: str) -> None:
    replaying.replay(url, None)


def change_model(url: str) -> None:
    """What a worker does where the settings ask for another model; `TEST_VECTORS` has the store's URL and key."""
    embedders = (Signs(), Signs(recipe=OTHERS, dimensions=32))
    with connect(url) as connection, closing(store.connect(*os.environ["TEST_VECTORS"].split())) as client:
        vector_models.want(connection, OTHERS, 32)
        generation = generations.live(connection).stage2
        points, scrub = OutboxPublisher(connection, client, generation), DriftScan(connection, client)
        while vector_models.models(connection).filling is not None:
            while points.sync() or any(points.embed(each) for each in embedders):
                pass
            scrub.step(generation)
            switched(connection, generation, scrub)
        drop_leftovers(connection, client)
        vector_models.prune(connection)


def restore(url: str) -> None:
    """The newest backup of the data directory, where nothing was restored before."""
    settings = load_settings(database_url=url)
    with connect(url) as connection, suppress(archive.NotEmpty):
        backups.restore(settings, connection, backups.newest(settings))


def back_up(url: str) -> None:
    with connect(url) as connection:
        copies.backup(load_settings(database_url=url), connection)


def forget(url: str) -> None:
    """The session `workshop-0`, under a key: asked again, it is gone on with."""
    with connect(url) as connection:
        reader = reader_of(connection, "default", OWNER)
        settings = load_settings(database_url=url)
        planned = partial(scope.plan, settings, reader, session="workshop-0")
        look = scope.look_of(settings, reader)
        forgetting.forget_once(settings, connection, look, "a-key", b"it", planned, None)


def prune(url: str) -> None:
    """What is older than ten days: asked again, what was begun is gone on with, as a worker does."""
    settings = load_settings(database_url=url)
    with connect(url) as connection, suppress(retention.NothingOldEnough):
        forgetting.resume(settings, connection, 1, None, by_rule=True)
        for _ in retention.prune(settings, connection, 1, retention.asked(connection, 1, 10), None):
            pass


def import_store(url: str) -> None:
    """The store in the data directory."""
    settings = load_settings(database_url=url)
    ingesting.BATCH = 12
    with IngestWriter(settings) as intake:
        importing.import_stores(intake, [settings.data_dir / STORE], mine=True)


def move_space(urls: str) -> None:
    """The space `lab` to the database `there`; `urls` are those of the database that all begin at, and of `there`."""
    here, there, to = urls.split()
    space_move.move(load_settings(database_url=here, databases={"there": there}), "lab", to)


class Mortals:
    """Starts such processes, one at a time."""

    def __init__(self, parent: subprocess.Popen[str], folder: Path) -> None:
        self._parent = parent
        self.folder = folder
        """Their data directory."""

    def statements(self, act: Act, url: str) -> int:
        """Run `act` to its end: how many statements that took."""
        assert not self.dies(act, url, NEVER)
        return int((self.folder / _STATEMENTS).read_text())

    def dies(self, act: Act, url: str, after: int) -> bool:
        """Run `act` and kill it after that many statements (0: before the first); False where it ended before."""
        end = self._ask("start", act.__name__, url, after, signal.SIGKILL)
        assert end in ("killed", "ended"), end
        return end == "killed"

    def stops(self, act: Act, url: str, after: int) -> bool:
        """Run `act` and stop it after that many statements; False where it ended before. See `go_on`."""
        end = self._ask("start", act.__name__, url, after, signal.SIGSTOP)
        assert end in ("stopped", "ended"), end
        return end == "stopped"

    def go_on(self) -> bool:
        """Let the stopped process go on to its end; False where it ended with an error."""
        return self._ask("continue") == "ended"

    def _ask(self, *request: object) -> str:
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        self._parent.stdin.write(json.dumps(request) + "\n")
        self._parent.stdin.flush()
        return self._parent.stdout.readline().strip()


@contextmanager
def mortals(folder: Path) -> Iterator[Mortals]:
    """A parent of such processes; what they keep beside the database goes into `folder`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMCTL_")}
    parent = subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**kept, "MEMCTL_DATA_DIR": str(used(folder))},
        preexec_fn=die_with_parent,
    )
    try:
        yield Mortals(parent, folder)
    finally:
        parent.kill()
        parent.wait()


def _serve() -> None:
    child = 0
    for line in sys.stdin:
        what, *arguments = json.loads(line)
        if what == "continue":
            os.kill(child, signal.SIGCONT)
        else:
            child = os.fork()
            if child == 0:
                _live(*arguments)
        _, status = os.waitpid(child, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            print("stopped", flush=True)
        elif os.WIFSIGNALED(status):
            print("killed" if os.WTERMSIG(status) == signal.SIGKILL else f"signal {os.WTERMSIG(status)}", flush=True)
        else:
            print("failed" if os.WEXITSTATUS(status) else "ended", flush=True)


def _live(act: str, url: str, after: int, how: int) -> None:
    die_with_parent()
    answered = 0
    wait = psycopg.Connection.wait

    def counted(self: psycopg.Connection[Any], *arguments: Any, **options: Any) -> Any:
        """Whatever waits for an answer passes here: BEGIN, COMMIT and the parts of a COPY too."""
        nonlocal answered
        if answered == 0 == after:
            os.kill(os.getpid(), how)
        answer = wait(self, *arguments, **options)
        answered += 1
        if answered == after:
            os.kill(os.getpid(), how)
        return answer

    psycopg.Connection.wait = counted  # type: ignore[method-assign]
    try:
        globals()[act](url)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    Path(os.environ["MEMCTL_DATA_DIR"], _STATEMENTS).write_text(str(answered))
    os._exit(0)


if __name__ == "__main__":
    _serve()
