"""Whose fault an error is: known by its status, its SQLSTATE or its class, never by an import."""

from __future__ import annotations

import email.message
import socket
import urllib.error
from typing import Any

import psycopg
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from psycopg import errors
from sqlalchemy.exc import OperationalError

from leasebook import Fail, RateLimited, Rejected
from leasebook.domain.limits import ERROR_CHARS_MAX
from leasebook.infra.app.failures import is_outage, rejection, retry_after, status_of
from leasebook.infra.app.redaction import bounded, reason_text, redact


class Response:
    def __init__(self, status: int, **headers: str) -> None:
        self.status_code = status
        self.headers = headers


class OfHttpx(Exception):
    """httpx and requests put the answer on the error."""

    def __init__(self, status: int, **headers: str) -> None:
        self.response = Response(status, **headers)


class OfAiohttp(Exception):
    """aiohttp puts its status on the error itself."""

    def __init__(self, status: int, **headers: str) -> None:
        self.status = status
        self.headers = headers


def of_urllib(status: int, **headers: str) -> Exception:
    message = email.message.Message()
    for name, value in headers.items():
        message[name] = value
    return urllib.error.HTTPError("https://x", status, "said no", message, None)


MAKERS = (OfHttpx, OfAiohttp, of_urllib)


@pytest.mark.acceptance("Q11")
@pytest.mark.parametrize("make", MAKERS)
def test_only_these_statuses_are_definite(make: Any) -> None:
    definite = {status for status in range(100, 600) if rejection(make(status)) is not None}
    assert definite == {400, 401, 403, 404, 405, 429}
    assert {status for status in range(100, 600) if is_outage(make(status))} == set(range(500, 600))


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    ("told", "seconds"),
    [("7", 7.0), ("0", 0.0), ("1e9", 86_400.0), ("-3", 0.0), ("nan", 0.0), ("tomorrow", 60.0)],
)
def test_a_limit_says_when_to_come_again(make: Any, told: str, seconds: float) -> None:
    assert retry_after(make(429, **{"Retry-After": told})) == seconds
    assert retry_after(make(503, **{"Retry-After": told})) is None
    assert retry_after(make(429)) is None


@pytest.mark.acceptance("Q11")
def test_the_handlers_word_is_definite_and_a_failure_is_not() -> None:
    assert rejection(Rejected("no such channel")) == "no such channel"
    assert rejection(Rejected("token=abcdef")) == "token=***"
    assert rejection(RateLimited(3)) == "rate limited for 3 s"
    for error in (Fail("of no use"), TimeoutError(), ConnectionResetError(), ValueError("404")):
        assert rejection(error) is None


class ConnectError(Exception):
    """Stands for the class of this name in httpx."""


ConnectError.__module__ = "httpx._exceptions"


class Deeper(ConnectError):
    """Derived from it elsewhere."""


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(),
        ConnectionResetError(),
        BrokenPipeError(),
        socket.gaierror("unknown host"),
        urllib.error.URLError(ConnectionRefusedError()),
        ConnectError(),
        Deeper(),
        psycopg.OperationalError("connection failed"),
        errors.LockNotAvailable("lock time-out"),
        errors.AdminShutdown("bye"),
        errors.TooManyConnections("full"),
        OperationalError("select", {}, errors.LockNotAvailable("lock time-out")),
    ],
    ids=repr,
)
def test_an_outage_is_nobodys_failure(error: Exception) -> None:
    assert is_outage(error)


class Hostile(Exception):
    """Nothing of it can be looked at."""

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__"):
            return super().__getattribute__(name)
        raise RuntimeError(name)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("HTTP 503"),
        TimeoutError(),
        errors.UniqueViolation("twice"),
        errors.QueryCanceled("statement time-out"),
        SystemExit(404),
        KeyboardInterrupt(),
        Hostile(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_everything_else_is_an_ordinary_failure(error: BaseException) -> None:
    assert status_of(error) is None
    assert not is_outage(error)
    assert retry_after(error) is None


SECRETS = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", min_size=24)
TELLTALES = st.sampled_from(
    [
        "https://user:{}@host/path",
        "https://{}@host/path",
        "https://host/path?access_token={}&page=2",
        "https://host/path?sig={}",
        "postgresql://u:{}@host:5432/db",
        "Authorization: Bearer {}",
        "password={} user=u",
        "'api_key': '{}'",
        '{{"client_secret": "{}"}}',
        "AWS_SECRET_ACCESS_KEY={}",
        "private_key: {}",
        "Set-Cookie: {}",
        "session_id={}",
        "ghp_{}",
        "xoxb-{}",
        "sk-{}",
        "eyJ{}.{}.x",
    ]
)


@given(SECRETS, TELLTALES, st.text(max_size=200), st.text(max_size=200))
def test_no_secret_is_kept_whatever_stands_around_it(
    secret: str, telltale: str, before: str, after: str
) -> None:
    assume(secret not in before + after)
    kept = reason_text(f"{before} {telltale.format(secret, secret)} {after}")
    assert secret not in kept
    assert len(kept) <= ERROR_CHARS_MAX
    kept.encode()
    assert "\0" not in kept


@given(st.text(max_size=3_000))
def test_redaction_settles_at_once(text: str) -> None:
    once = redact(text)
    assert redact(once) == once
    assert bounded(once, 100) == bounded(bounded(once, 100), 100)
