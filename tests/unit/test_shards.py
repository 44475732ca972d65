"""Shards: every stream belongs to one of them."""

from __future__ import annotations

import pytest

from memctl.infra.readmodels.generations import hashes_of


@pytest.mark.parametrize("shards", [*range(1, 33), 100, 255, 256])
def test_every_stream_belongs_to_one_shard(shards: int) -> None:
    ranges = [hashes_of(shard, shards) for shard in range(shards)]
    assert [hash for low, high in ranges for hash in range(low, high + 1)] == list(range(256))
