"""Streams that take long to be folded again, and are therefore not folded again in a batch with others."""

import time
from collections import OrderedDict
from collections.abc import Collection

from memctl.infra.log.read import StreamKey

COSTLY_S, PAUSE_FACTOR = 1.0, 60
"""Seconds of processor time from which a stream's fold is costly. No costly stream is then folded again in a batch for
the second times the square of these seconds, so that costly folds take a small share of the time."""

MOST_COSTLY = 256
"""Costly streams that are remembered, the newest."""


class CostlyStreams:
    """What folds of streams cost. `trial_only`: streams at whose folds a process was ended; only a trial folds them."""

    def __init__(self, trial_only: Collection[StreamKey] = ()) -> None:
        self._trial_only = frozenset(trial_only)
        self._costly: OrderedDict[StreamKey, None] = OrderedDict()
        """The one that was folded last stands at the end."""
        self._paused_until = 0.0
        """By the monotonic clock."""

    def note(self, key: StreamKey, seconds: float) -> None:
        """A stream's fold took so many seconds of processor time."""
        self._costly.pop(key, None)
        if seconds >= COSTLY_S:
            self._costly[key] = None
            self._paused_until = max(self._paused_until, time.monotonic() + PAUSE_FACTOR * seconds**2)
            if len(self._costly) > MOST_COSTLY:
                self._costly.popitem(last=False)

    def needs_trial(self, key: StreamKey) -> bool:
        return key in self._trial_only

    def is_postponed(self, key: StreamKey) -> bool:
        """Whether a stream is not to be folded again in a batch now."""
        return self.needs_trial(key) or (key in self._costly and time.monotonic() < self._paused_until)
