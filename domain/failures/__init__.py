"""Errors in the output of tools: their shapes, the signature by which one is known again, and what mends it."""
