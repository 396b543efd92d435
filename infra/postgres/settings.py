"""How a connection of leasebook behaves.  Every time-out has a name and nothing waits for ever."""

from __future__ import annotations

from attrs import field, frozen

from ...domain.limits import check_seconds


def _seconds(instance: object, attribute: object, value: float) -> None:
    check_seconds(getattr(attribute, "name", "seconds"), value, least=0.001, most=86_400.0)


@frozen
class Settings:
    """All durations are seconds.  Raises InvalidValue for one that is not positive.

    ``connect_seconds`` bounds the making of a connection, ``silence_seconds`` how long a lost peer
    goes unnoticed.  ``lock_seconds``, ``statement_seconds`` and ``idle_seconds`` bound, inside a
    transaction, one wait for a lock, one statement, and one pause between two statements.
    ``prepare_after`` executions a statement is prepared on the server; None never prepares, and
    behind a pooler nothing is unless ``LEASEBOOK_PREPARE`` says so.  ``collect_keys`` group keys
    are collected at most in one transaction, because each takes a place in the server's lock table.
    """

    connect_seconds: float = field(default=10.0, validator=_seconds)
    silence_seconds: float = field(default=30.0, validator=_seconds)
    lock_seconds: float = field(default=5.0, validator=_seconds)
    statement_seconds: float = field(default=10.0, validator=_seconds)
    idle_seconds: float = field(default=5.0, validator=_seconds)
    prepare_after: int | None = 1
    collect_keys: int = 500
