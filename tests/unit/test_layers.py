"""How stage 2 is dealt out: each row to one shard of its layer, whatever the number of shards."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from soak import examples

from memctl.projections import layers
from memctl.projections.kernel import projections

NUMBERS = (1, 2, 3, 7, 16, 64, 100, 256)


def test_each_read_model_stands_behind_those_that_it_reads() -> None:
    step_of = {p.row: n for n, step in enumerate(layers.steps()) for p in step}
    layer_of = {p.row: n for n, layer in enumerate(layers.layers()) for p in layer}
    assert step_of.keys() == layer_of.keys() == {p.row for p in projections(2)}
    for p in projections(2):
        assert step_of[p.row] == max((1 + step_of[row] for row in p.upstream), default=0)
        assert layer_of[p.row] == max((layer_of[row] + (not p.same_key) for row in p.upstream), default=0)


@pytest.mark.parametrize("number", NUMBERS)
def test_all_rows_of_all_read_models_are_dealt_out(number: int) -> None:
    of = layers.shards_of(number)
    slices = [layers.slice_of(shard, of) for shard in range(of)]
    for p in projections(2):
        masks = [each.mask for each in slices if p.name in each.names]
        assert sum(mask % (1 << 64) for mask in masks) == (1 << 64) - 1, "each slot once"
        assert all(masks)


@examples(30)
@given(key=st.text(max_size=40), number=st.sampled_from((1, 3, 16)))
def test_a_row_has_one_shard_in_its_layer(key: str, number: int) -> None:
    of = layers.shards_of(number)
    for p in projections(2):
        owners = [shard for shard in range(of) if layers.slice_of(shard, of).owns(p.name, key)]
        assert owners == [layers.shard_of(p.name, key, of)]
        assert p in layers.slice_of(owners[0], of).projections
        assert number == 1 or p in layers.layers()[layers.layer_of(owners[0], of)]


@examples(30)
@given(keys=st.lists(st.text(max_size=10), max_size=6), number=st.sampled_from((3, 16, 64)))
def test_who_reads_a_source_are_those_whose_rows_it_goes_to(keys: list[str], number: int) -> None:
    of = layers.shards_of(number)
    p, mask = projections(2)[0], layers.mask_of(keys)
    assert -(1 << 63) <= mask < 1 << 63, "it is a bigint"
    for shard in range(of):
        mine = layers.slice_of(shard, of)
        if p.name in mine.names:
            assert bool(mine.mask & mask) == any(mine.owns(p.name, key) for key in keys)
