"""Opening a connection by a DSN without ever telling what is in it.

A DSN is what libpq reads: a URI (`postgresql://user@host/database`) or key=value pairs
(`host=... dbname=...`).  libpq's own errors quote it, and with it the password.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from ...domain.errors import LeasebookError
from ..ports import StoreUnavailable

if TYPE_CHECKING:
    from sqlalchemy import Engine

_PORTS = re.compile(r"[0-9]*(,[0-9]*)*")


class InvalidDsn(LeasebookError, ValueError):
    """libpq cannot read the DSN, or reads it otherwise than it was meant."""

    code = "invalid_dsn"

    def __init__(self) -> None:
        super().__init__(
            "the DSN was refused: it is neither a URI (postgresql://user@host/database) nor "
            "key=value pairs (host=... dbname=...). It is not shown here, as it may hold a "
            "password; in a URI the characters @ : / % of a password are written %40 %3A %2F %25. "
            "SQLAlchemy's postgresql+psycopg:// is written postgresql://."
        )


def check_dsn(dsn: str) -> None:
    """Raises InvalidDsn, also where a piece of an unescaped password would pass as host or port."""
    try:
        parts = conninfo_to_dict(dsn)
    except (psycopg.Error, UnicodeError):
        raise InvalidDsn from None
    # A first @ in a host is an abstract socket.
    if "@" in str(parts.get("host") or "")[1:]:
        raise InvalidDsn
    if not _PORTS.fullmatch(str(parts.get("port") or "")):
        raise InvalidDsn


def connect(dsn: str) -> psycopg.Connection[Any]:
    """A connection that works through a pooler too: it prepares no statements.

    Raises InvalidDsn, and StoreUnavailable when the server cannot be reached or says no.
    """
    check_dsn(dsn)
    try:
        return psycopg.connect(dsn, prepare_threshold=None)
    except psycopg.OperationalError as error:
        raise StoreUnavailable(str(error).strip()) from error


def engine_on(dsn: str) -> Engine:
    """A plain SQLAlchemy engine over psycopg.  Raises InvalidDsn."""
    from sqlalchemy import create_engine

    check_dsn(dsn)
    return create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn))
