"""How sure an answer is, in three classes: what is stated as fact, what is offered, what is neither."""

from typing import Literal

Class = Literal["high", "suggested", "none"]

SUGGESTED = 0.75
"""From this likeness on an error, or a result of a profile whose scores are no chances, is suggested."""
