"""Whether a pooler such as PgBouncer stands between us and the server, and what follows from that.

In transaction mode each transaction may meet another session of the server.  Whatever a session
remembers is lost or, worse, another's: statements it has prepared, LISTEN, settings, locks.  All of
leasebook's settings and locks are then those of one transaction; the other two are given up.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg.rows import scalar_row

from ...domain.errors import InvalidValue

#: ``1`` prepares behind a pooler too (PgBouncer from 1.21 with ``max_prepared_statements``, or one
#: in session mode), ``0`` never prepares, ``auto`` only where no pooler is seen.
PREPARE = "LEASEBOOK_PREPARE"
PREPARE_DEFAULT = "auto"
CHOICES = ("0", "1", PREPARE_DEFAULT)


def is_pooled(connection: psycopg.Connection[Any]) -> bool:
    """Whether the process that answers is not the one that greeted us.

    The server tells its process id at the greeting, for cancelling.  A pooler puts a number of its
    own there, because it is the pooler that must be asked.
    """
    with connection.cursor(row_factory=scalar_row) as cursor:
        pid = cursor.execute("select pg_catalog.pg_backend_pid()").fetchone()
    return pid != connection.info.backend_pid


def may_prepare(*, pooled: bool, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether statements may be prepared on a connection, through a pooler or not.

    Raises InvalidValue for a ``LEASEBOOK_PREPARE`` that is none of its choices.
    """
    chosen = environ.get(PREPARE) or PREPARE_DEFAULT
    if chosen not in CHOICES:
        raise InvalidValue(PREPARE, f"{chosen!r}", f"give one of {', '.join(CHOICES)}")
    return chosen == "1" or (chosen == PREPARE_DEFAULT and not pooled)
