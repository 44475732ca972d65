"""The read models that questions are asked of, each with the type of its rows."""

from memctl.projections.bug_patterns import bug_patterns
from memctl.projections.bug_sightings import bug_sightings
from memctl.projections.candidates import candidates
from memctl.projections.code_patterns import code_patterns
from memctl.projections.code_rules import code_rules
from memctl.projections.consolidated import consolidated, consolidation_log
from memctl.projections.core_memory import core_memory
from memctl.projections.entities import entities
from memctl.projections.episodes import episodes
from memctl.projections.forget_requests import forget_requests
from memctl.projections.hindsight import hindsight
from memctl.projections.injections import injections
from memctl.projections.insights import insights
from memctl.projections.known_commands import known_commands
from memctl.projections.locations import locations
from memctl.projections.memories import memories
from memctl.projections.memory_feedback import memory_feedback
from memctl.projections.observed_files import observed_files
from memctl.projections.project_digests import project_digests
from memctl.projections.project_knowledge import project_knowledge
from memctl.projections.project_shares import project_shares
from memctl.projections.project_words import project_words
from memctl.projections.reflections import reflections
from memctl.projections.relations import relations
from memctl.projections.resolutions import resolutions
from memctl.projections.sentiment import sentiment
from memctl.projections.sessions import sessions
from memctl.projections.stats import stats
from memctl.projections.strategies import strategies
from memctl.projections.tasks import tasks
from memctl.projections.tool_patterns import tool_patterns
from memctl.projections.user_preferences import user_preferences
from memctl.projections.vector_points import vector_points
from memctl.projections.verified_knowledge import verified_knowledge
from memctl.projections.working_memory import working_memory

__all__ = [
    "bug_patterns",
    "bug_sightings",
    "candidates",
    "code_patterns",
    "code_rules",
    "consolidated",
    "consolidation_log",
    "core_memory",
    "entities",
    "episodes",
    "forget_requests",
    "hindsight",
    "injections",
    "insights",
    "known_commands",
    "locations",
    "memories",
    "memory_feedback",
    "observed_files",
    "project_digests",
    "project_knowledge",
    "project_shares",
    "project_words",
    "reflections",
    "relations",
    "resolutions",
    "sentiment",
    "sessions",
    "stats",
    "strategies",
    "tasks",
    "tool_patterns",
    "user_preferences",
    "vector_points",
    "verified_knowledge",
    "working_memory",
]
