"""The event log: schema, append, mark, read. Everything else that memctl knows is a fold over it."""
