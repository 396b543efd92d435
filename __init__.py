"""leasebook: an event-sourced job queue inside your own PostgreSQL.

This is the public face. A name is imported when it is first used, so that `import leasebook.domain`
loads neither a database driver nor the command line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

# Public name -> module that defines it. Each name stands in __all__ too, and type checkers read it
# from an import below, `from leasebook.infra.app import Book`; tests/test_face.py compares them.
_LAZY: dict[str, str] = {
    "AI_STEPS": "leasebook.domain",
    "Autocommit": "leasebook.infra.caller_ports",
    "Book": "leasebook.infra.app",
    "Effect": "leasebook.infra.app",
    "EffectRefused": "leasebook.domain",
    "EffectUncertain": "leasebook.domain",
    "EffectUnfinished": "leasebook.infra.app",
    "Fail": "leasebook.infra.app",
    "Group": "leasebook.domain",
    "IdempotencyConflict": "leasebook.domain",
    "InvalidValue": "leasebook.domain",
    "LeasebookError": "leasebook.domain",
    "NoTransaction": "leasebook.infra.postgres.caller_errors",
    "PRODUCT_EVENTS": "leasebook.domain",
    "RateLimited": "leasebook.infra.app",
    "Receipt": "leasebook.infra.caller_ports",
    "Rejected": "leasebook.infra.app",
    "Retry": "leasebook.domain",
    "RetryIn": "leasebook.infra.app",
    "Run": "leasebook.infra.app",
    "SchemaIncomplete": "leasebook.infra.postgres.schema.errors",
    "Snooze": "leasebook.infra.app",
    "StaleLease": "leasebook.domain",
    "Status": "leasebook.projections.status",
    "UniqueKeyTaken": "leasebook.domain",
    "WORKFLOW_ACTIONS": "leasebook.domain",
}

__all__ = [
    "AI_STEPS",
    "PRODUCT_EVENTS",
    "WORKFLOW_ACTIONS",
    "Autocommit",
    "Book",
    "Effect",
    "EffectRefused",
    "EffectUncertain",
    "EffectUnfinished",
    "Fail",
    "Group",
    "IdempotencyConflict",
    "InvalidValue",
    "LeasebookError",
    "NoTransaction",
    "RateLimited",
    "Receipt",
    "Rejected",
    "Retry",
    "RetryIn",
    "Run",
    "SchemaIncomplete",
    "Snooze",
    "StaleLease",
    "Status",
    "UniqueKeyTaken",
    "__version__",
]

__version__: str

if TYPE_CHECKING:
    from leasebook.domain import (
        AI_STEPS,
        PRODUCT_EVENTS,
        WORKFLOW_ACTIONS,
        EffectRefused,
        EffectUncertain,
        Group,
        IdempotencyConflict,
        InvalidValue,
        LeasebookError,
        Retry,
        StaleLease,
        UniqueKeyTaken,
    )
    from leasebook.infra.app import (
        Book,
        Effect,
        EffectUnfinished,
        Fail,
        RateLimited,
        Rejected,
        RetryIn,
        Run,
        Snooze,
    )
    from leasebook.infra.caller_ports import Autocommit, Receipt
    from leasebook.infra.postgres.caller_errors import (
        NoTransaction,
    )
    from leasebook.infra.postgres.schema.errors import (
        SchemaIncomplete,
    )
    from leasebook.projections.status import Status
else:
    # Hidden from type checkers, which would otherwise accept every misspelt name.
    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name == "__version__":
            value = import_module("importlib.metadata").version("leasebook")
        elif name in _LAZY:
            value = getattr(import_module(_LAZY[name]), name)
        else:
            raise AttributeError(f"module 'leasebook' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
