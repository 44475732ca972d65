"""Which processors there are, by the settings."""

from memctl.infra.settings import Settings
from memctl.workers.processors.consolidator import Consolidator
from memctl.workers.processors.reflector import Reflector
from memctl.workers.processors.runner import Processor
from memctl.workers.processors.staleness import StalenessChecker


def by_rule(settings: Settings, *, asked: bool = False) -> list[Processor]:
    """Those that work by themselves. `asked`: somebody waits, so what is due by the clock is due now."""
    wanted: list[Processor] = [StalenessChecker(asked=asked)]
    if settings.processors.reflect:
        wanted.append(Reflector(asked=asked))
    if settings.processors.consolidate:
        wanted.append(Consolidator())
    return wanted


def by_model(settings: Settings) -> list[Processor]:
    """Those that ask a language model, where one is configured."""
    if settings.llm.provider == "none":
        return []
    from memctl.workers.processors.language_model import llm_processors

    return [*llm_processors(settings)]
