"""The pure heart of leasebook: states, events, commands and the rules between them.

It needs the standard library and attrs, and touches no clock, no randomness, no file and no
database.  ``decide`` says what a command makes of a job, ``evolve`` and ``fold`` what events make
of it; all else here are the values that those three speak in.
"""

from __future__ import annotations

from . import commands, events
from .admission import admit, is_suspect, suspects_allowed
from .decide import change, decide
from .decide.collection import collect
from .decide.keys import meet
from .errors import (
    DamagedEvent,
    EffectRefused,
    EffectUncertain,
    GroupRefused,
    IdempotencyConflict,
    IllegalTransition,
    InvalidValue,
    LeasebookError,
    NotDue,
    StaleLease,
    UniqueKeyTaken,
    UnknownEvent,
)
from .evolve import evolve, fold
from .grouping import Arrival
from .job import Effect, Group, Job, JobSpec, Lease, Policy
from .log import Change, Recorded, already_recorded
from .retry import AI_STEPS, PRODUCT_EVENTS, WORKFLOW_ACTIONS, Retry
from .states import TRANSITIONS, State
from .values import (
    CloseReason,
    EffectKind,
    ExpiryCause,
    Json,
    OnConflict,
    OnExhausted,
    OnExpired,
    OnHold,
    Outcome,
    ReleaseReason,
)

__all__ = [
    "AI_STEPS",
    "PRODUCT_EVENTS",
    "TRANSITIONS",
    "WORKFLOW_ACTIONS",
    "Arrival",
    "Change",
    "CloseReason",
    "DamagedEvent",
    "Effect",
    "EffectKind",
    "EffectRefused",
    "EffectUncertain",
    "ExpiryCause",
    "Group",
    "GroupRefused",
    "IdempotencyConflict",
    "IllegalTransition",
    "InvalidValue",
    "Job",
    "JobSpec",
    "Json",
    "Lease",
    "LeasebookError",
    "NotDue",
    "OnConflict",
    "OnExhausted",
    "OnExpired",
    "OnHold",
    "Outcome",
    "Policy",
    "Recorded",
    "ReleaseReason",
    "Retry",
    "StaleLease",
    "State",
    "UniqueKeyTaken",
    "UnknownEvent",
    "admit",
    "already_recorded",
    "change",
    "collect",
    "commands",
    "decide",
    "events",
    "evolve",
    "fold",
    "is_suspect",
    "meet",
    "suspects_allowed",
]
