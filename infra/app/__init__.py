"""The book and what applications do with it.

Names are imported when they are first used, so that one of them does not load the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .book import Book
    from .effects import Effect
    from .errors import EffectUnfinished, HandlerRefused, NameTaken, ResultRefused, UnknownName
    from .registry import JobType
    from .run import Run
    from .signals import Fail, RateLimited, Rejected, RetryIn, Snooze

_LAZY = {
    "Book": "book",
    "Effect": "effects",
    "EffectUnfinished": "errors",
    "Fail": "signals",
    "HandlerRefused": "errors",
    "JobType": "registry",
    "NameTaken": "errors",
    "RateLimited": "signals",
    "Rejected": "signals",
    "ResultRefused": "errors",
    "RetryIn": "signals",
    "Run": "run",
    "Snooze": "signals",
    "UnknownName": "errors",
}

__all__ = [
    "Book",
    "Effect",
    "EffectUnfinished",
    "Fail",
    "HandlerRefused",
    "JobType",
    "NameTaken",
    "RateLimited",
    "Rejected",
    "ResultRefused",
    "RetryIn",
    "Run",
    "Snooze",
    "UnknownName",
]

if not TYPE_CHECKING:
    # Hidden from type checkers, which would otherwise accept every misspelt name.
    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f".{_LAZY[name]}", __name__), name)
        globals()[name] = value
        return value
