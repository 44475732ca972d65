"""Read models built from the log beside the live ones, compared, and switched to."""
