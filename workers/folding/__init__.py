"""Folding as events come: a batch of a shard, both stages, what cannot be folded, and who watches it."""
