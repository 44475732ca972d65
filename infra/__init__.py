"""The outside world: settings, the event log, read-model tables, the queue, vectors, embedded servers."""
