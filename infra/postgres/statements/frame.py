"""How a transaction of ours begins, and how it puts the planner on rails."""

from __future__ import annotations

from functools import lru_cache

from ..settings import Settings


def begin(settings: Settings) -> str:
    """Begin a worker's transaction, whatever the database's defaults, and tell its time."""
    return f"{_frame(settings)}select pg_catalog.clock_timestamp()"


def begin_look(settings: Settings) -> str:
    """Begin a read-only look; the question follows in the same message."""
    return _frame(settings, "read only")


def begin_write(settings: Settings) -> str:
    """Begin a short write; the statement follows in the same message."""
    return _frame(settings)


def begin_impatient(settings: Settings, seconds: float) -> str:
    """Begin what waits for a lock at most so many seconds."""
    return f"{_frame(settings)}set local lock_timeout = {_milliseconds(seconds)};\n"


def begin_snapshot(settings: Settings) -> str:
    """Begin a read-only look of several questions, all of which see one moment."""
    frame = _frame(settings, "read only")
    return frame.replace("read committed", "repeatable read", 1)


def begin_window(settings: Settings) -> str:
    """Begin what reads a window of the log, and goes by the index of transaction numbers.

    That index is read by bitmap only.
    """
    return f"{_frame(settings)}set local enable_bitmapscan = on;\n"


def begin_steady_window(settings: Settings) -> str:
    """Begin what reads a window and, in the same snapshot, whole streams of its jobs."""
    return begin_window(settings).replace("read committed", "repeatable read", 1)


def is_bare(begin: str) -> bool:
    """Whether this begins a transaction like any single statement's, once the session is framed."""
    return begin in (_begin(), _begin("read only"))


def _begin(access: str = "") -> str:
    return f"{f'begin isolation level read committed {access}'.rstrip()};\n"


def _frame(settings: Settings, access: str = "") -> str:
    """READ COMMITTED, bounded waits, times in UTC, and one plan for a small table and a huge one.

    The claim table swings between empty and huge, faster than its statistics follow.  With the
    alternatives off every statement keeps the plan by index that is right when it matters.  (JIT
    would answer the cost that is put on a plan without an alternative by compiling it.)
    """
    return f"{_begin(access)}{local(settings)}"


@lru_cache
def local(settings: Settings) -> str:
    """What every transaction of ours sets for itself."""
    return "".join(f"set local {name} = '{value}';\n" for name, value in _rails(settings))


def standing(settings: Settings) -> str:
    """Set the same for the session of process %(pid)s; no row when another one answers."""
    isolation = ("default_transaction_isolation", "read committed")
    pairs = ",\n           ".join(
        f"('{name}', '{value}')" for name, value in (isolation, *_rails(settings))
    )
    return f"""
select pg_catalog.set_config(s.name, s.value, false)
  from (values
           {pairs}
       ) as s (name, value)
 where pg_catalog.pg_backend_pid() = %(pid)s
"""


def _rails(settings: Settings) -> list[tuple[str, str]]:
    off = ("enable_seqscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin", "jit")
    return [
        ("idle_in_transaction_session_timeout", f"{_milliseconds(settings.idle_seconds)}"),
        ("lock_timeout", f"{_milliseconds(settings.lock_seconds)}"),
        ("statement_timeout", f"{_milliseconds(settings.statement_seconds)}"),
        ("timezone", "UTC"),
        ("datestyle", "ISO"),
        *((name, "off") for name in off),
        ("plan_cache_mode", "force_generic_plan"),
    ]


def _milliseconds(seconds: float) -> int:
    # Zero would switch the time-out off.
    return max(1, round(seconds * 1000))
