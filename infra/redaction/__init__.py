"""Secrets are not stored: every event passes `prepare` on its way into the log, whichever door it came by."""

from memctl.infra.redaction.events import Prepared, as_sent, prepare, prepare_all
from memctl.infra.redaction.text import PRIVATE, Redactor, default_redactor, redact, redactor_of

__all__ = [
    "PRIVATE",
    "Prepared",
    "Redactor",
    "as_sent",
    "default_redactor",
    "prepare",
    "prepare_all",
    "redact",
    "redactor_of",
]
