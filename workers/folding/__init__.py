"""Folding as events come: a batch of a shard, both stages, and what cannot be folded."""
