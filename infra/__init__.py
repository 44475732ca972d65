"""The outside world: settings, the event log, read-model tables, the queue, vectors, embedded servers."""

from memctl.infra.readmodels import fingerprint as _rules  # noqa: F401  # first of all: it notes which files will have been loaded
