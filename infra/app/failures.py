"""What an exception says of the outside: a definite rejection, an outage, a limit, or nothing.

No HTTP library and no driver is imported: an error is known by its status, its SQLSTATE, or the
name of its class.  Looking at it raises nothing, whatever the error is made of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .redaction import reason_text
from .signals import RateLimited, Rejected

#: HTTP answers that say that nothing was done.
REJECTED = frozenset({400, 401, 403, 404, 405, 429})
TOO_MANY = 429
#: SQLSTATEs, or their beginnings, of a server that cannot serve now: lock time-outs, lost
#: connections, too many of them, a server that stops or starts.
SQL_OUTAGES = ("55P03", "08", "53300", "57P01", "57P02", "57P03")
#: The package of an error and its class, or one that it is derived from: no connection was had.
OUTAGES = frozenset(
    {
        ("aiohttp", "ClientConnectorError"),
        ("aiohttp", "ServerDisconnectedError"),
        ("botocore", "EndpointConnectionError"),
        ("builtins", "ConnectionError"),
        ("httpcore", "ConnectError"),
        ("httpcore", "ConnectTimeout"),
        ("httpx", "ConnectError"),
        ("httpx", "ConnectTimeout"),
        ("httpx", "PoolTimeout"),
        ("redis", "ConnectionError"),
        ("requests", "ConnectionError"),
        ("socket", "gaierror"),
        ("socket", "herror"),
        ("urllib3", "NewConnectionError"),
    }
)
#: Their errors without a SQLSTATE are about the connection.
DRIVERS = frozenset({("psycopg", "OperationalError"), ("psycopg2", "OperationalError")})
RETRY_AFTER_SECONDS_MAX = 86_400.0
#: Stands for a Retry-After that is no number of seconds.
RETRY_AFTER_SECONDS_DEFAULT = 60.0


def rejection(error: BaseException) -> str | None:
    """Why an effect has certainly not happened, None when nobody can tell."""
    if isinstance(error, Rejected):
        return reason_text(error.reason)
    if isinstance(error, RateLimited):
        return reason_text(str(error))
    status = status_of(error)
    return f"HTTP {status}" if status in REJECTED else None


def retry_after(error: BaseException) -> float | None:
    """In how many seconds a 429 may be repeated, if it says so."""
    if status_of(error) != TOO_MANY:
        return None
    headers = _quietly(lambda: _response(error).headers) or _quietly(lambda: _any(error).headers)
    told = _quietly(lambda: headers.get("Retry-After") or headers.get("retry-after"))
    if told is None:
        return None
    seconds: float | None = _quietly(lambda: float(told))
    if seconds is None:
        return RETRY_AFTER_SECONDS_DEFAULT
    return min(max(0.0, seconds), RETRY_AFTER_SECONDS_MAX)


def is_outage(error: BaseException) -> bool:
    """Whether somebody else's system is away, so that another try later is all that helps."""
    status = status_of(error)
    if status is not None:
        return 500 <= status <= 599
    # SQLAlchemy wraps the error of its driver.
    for each in (error, _quietly(lambda: _any(error).orig)):
        if isinstance(each, Exception) and _no_connection(each):
            return True
    return False


def status_of(error: BaseException) -> int | None:
    """The HTTP status that an error carries, by itself or in its response."""
    if not isinstance(error, Exception):
        return None
    for ask in (
        lambda: _response(error).status_code,
        lambda: _response(error).status,
        lambda: _any(error).status_code,
        lambda: _any(error).status,
        lambda: _any(error).code if _any(error).headers is not None else None,  # urllib
    ):
        status = _quietly(ask)
        if isinstance(status, int) and not isinstance(status, bool) and 100 <= status <= 599:
            return int(status)
    return None


def _no_connection(error: Exception) -> bool:
    state = _quietly(lambda: _any(error).sqlstate) or _quietly(lambda: _any(error).pgcode)
    if isinstance(state, str):
        return state.startswith(SQL_OUTAGES)
    reason = _quietly(lambda: _any(error).reason)  # urllib.error.URLError
    if isinstance(reason, Exception) and reason is not error and _named(reason, OUTAGES):
        return True
    return _named(error, OUTAGES) or _named(error, DRIVERS)


def _named(error: Exception, names: frozenset[tuple[str, str]]) -> bool:
    return any(
        (each.__module__.partition(".")[0], each.__name__) in names for each in type(error).__mro__
    )


def _response(error: BaseException) -> Any:
    return _any(error).response


def _any(error: BaseException) -> Any:
    return error


def _quietly(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except Exception:
        return None
