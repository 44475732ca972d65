"""How sure an answer is, in three classes: what is stated as fact, what is offered, what is neither."""

from __future__ import annotations

from typing import Literal

Class = Literal["high", "suggested", "none"]

HIGH, SUGGESTED, MARGIN = 0.92, 0.75, 0.03
"""From these scores on an answer is high, or suggested; a high one is this far above the second."""
