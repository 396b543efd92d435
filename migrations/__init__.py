"""The schema's history, run by Alembic.

`leasebook migrate` is the entry: it hands `env.py` a connection and the schema, so that nobody
needs an alembic.ini.  There is no way down: the log is the truth, and a downgrade would lose it.
"""

from __future__ import annotations

from typing import Final

#: Every released revision, oldest first.  A worker compares them without loading Alembic.
REVISIONS: Final = ("0001", "0002", "0003", "0004", "0005")

#: Where Alembic keeps the revision, inside the schema.
VERSION_TABLE: Final = "leasebook_version"
