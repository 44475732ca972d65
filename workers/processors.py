"""Which processors there are, by the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memctl.workers.consolidator import Consolidator
from memctl.workers.reflector import Reflector
from memctl.workers.staleness import StalenessChecker

if TYPE_CHECKING:
    from memctl.infra.settings import Settings
    from memctl.workers.processing import Processor


def processors_of(settings: Settings, *, asked: bool = False) -> list[Processor]:
    """Those that work by themselves, and where a language model is configured those that ask it.

    `asked`: somebody waits, so what is due by the clock is due now.
    """
    found: list[Processor] = [StalenessChecker(asked=asked), Reflector(asked=asked), Consolidator()]
    if settings.llm.provider != "none":
        from memctl.workers.llm_processors import llm_processors

        found += llm_processors(settings)
    return found
