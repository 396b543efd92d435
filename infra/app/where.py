"""Which database a book uses, when that is said by an argument or by the environment."""

from __future__ import annotations

from collections.abc import Mapping

from ...domain.errors import InvalidValue

#: Workers and producers need no more rights than this role has.
WORKER_ROLE = "leasebook_worker"


def chosen_dsn(dsn: str | None, environ: Mapping[str, str]) -> str | None:
    """The DSN of the argument, of ``LEASEBOOK_DSN``, or of the parts; None: nobody said.

    The parts are ``LEASEBOOK_HOST``, ``LEASEBOOK_PORT`` and ``LEASEBOOK_DATABASE``, with the role
    ``leasebook_worker`` and ``LEASEBOOK_WORKER_PASSWORD``: never the credentials of an owner.
    Raises InvalidValue for parts without a host or a database.
    """
    if dsn is not None:
        if not isinstance(dsn, str) or not dsn.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidValue("dsn", "an empty one", "give a DSN, or None for the default")
        return dsn
    if environ.get("LEASEBOOK_DSN"):
        return environ["LEASEBOOK_DSN"]
    names = {"host": "LEASEBOOK_HOST", "port": "LEASEBOOK_PORT", "dbname": "LEASEBOOK_DATABASE"}
    parts = {part: environ[name] for part, name in names.items() if environ.get(name)}
    if not parts:
        return None
    for part in ("host", "dbname"):
        if part not in parts:
            given = ", ".join(names[each] for each in parts)
            raise InvalidValue(names[part], f"nothing beside {given}", "set it, or LEASEBOOK_DSN")
    parts["user"] = WORKER_ROLE
    # An empty password, not none: else libpq would send the one of PGPASSWORD, an owner's perhaps.
    # (A line of ~/.pgpass is for this very role, and is still used.)
    parts["password"] = environ.get("LEASEBOOK_WORKER_PASSWORD", "")
    return " ".join(f"{part}={_quote(value)}" for part, value in parts.items())


def _quote(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
