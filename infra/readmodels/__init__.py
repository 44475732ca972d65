"""The tables that hold what was folded: rows, facts, generations and their offsets, and what could not be folded."""
