"""Search: candidates are gathered, fused and ranked."""
