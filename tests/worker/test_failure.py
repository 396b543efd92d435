"""What is kept of an exception: short, storable, without secrets, and made in little time."""

from __future__ import annotations

import time

import pytest

from leasebook.domain.limits import ERROR_CHARS_MAX
from leasebook.infra.app.redaction import bounded, redact
from leasebook.infra.worker.failure import describe

SECRET = "hunter2hunter2hunter2"


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://shop:{SECRET}@db.example:5432/shop",
        f"cannot connect to redis://:{SECRET}@cache/0: refused",
        f"amqp://u:p@ss{SECRET}@mq/vhost",
        f"mysql://u:a/{SECRET}/b@db/x",
        f"POST /v1 failed, Authorization: Bearer {SECRET}",
        f"authorization: basic {SECRET}==",
        f"password={SECRET}",
        f"dsn 'host=db user=u password={SECRET} dbname=x'",
        f"PASSWORD = '{SECRET} with spaces'",
        f'{{"password": "{SECRET}", "user": "u"}}',
        f"{{'api_key': '{SECRET}'}}",
        f"https://api.example/v1?token={SECRET}&page=2",
        f"X-Api-Key: {SECRET}",
        f"client_secret={SECRET}; retry",
        f"AWS_SECRET_ACCESS_KEY={SECRET}",
        f"key sk-{SECRET}",
        f"ghp_{SECRET}",
        f"my-db-password: {SECRET}",
        f"fatal: https://{SECRET}@github.com/x not found",
        f"pass={SECRET}",
        f"mysql --password {SECRET} -u root",
        f"('password', '{SECRET}')",
        f"<password>{SECRET}</password>",
        f'{{\\"password\\": \\"{SECRET}\\"}}',
        f"body password%3D{SECRET}",
        f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n-----END RSA PRIVATE KEY-----",
        f"AUTH PLAIN {SECRET}==",
        f"https://hooks.slack.com/services/T0/{SECRET}",
        f"https://discord.com/api/webhooks/1/{SECRET}",
        f"https://api.telegram.org/bot1:{SECRET}/send",
    ],
)
def test_secrets_are_redacted(text: str) -> None:
    shown = redact(text)
    assert SECRET not in shown
    assert "***" in shown


@pytest.mark.parametrize(
    "text",
    [
        "KeyError: 'path'",
        "https://example.org/a/b?page=2#top",
        "connection to server at 127.0.0.1, port 5432 failed",
        "expected ':' after key at line 3",
        "12:30:45 user@example.org wrote",
        "tokens are counted",
        "no token, which is odd, and pass the salt",
    ],
)
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert redact(text) == text


def test_what_is_kept_is_bounded_and_says_where() -> None:
    try:
        raise ValueError("x" * 5_000_000)
    except ValueError as error:
        text = describe(error)
    assert len(text) == ERROR_CHARS_MAX
    assert text.startswith("ValueError: xxx")
    assert text.endswith("in test_what_is_kept_is_bounded_and_says_where)")


def test_a_secret_at_the_cut_is_not_shown_in_part() -> None:
    for start in range(ERROR_CHARS_MAX - 60, ERROR_CHARS_MAX + 10):
        shown = describe(ValueError("x" * start + f" password={SECRET}"))
        assert SECRET[:4] not in shown


@pytest.mark.parametrize("text", ["nul \0", "lone \ud800", "both \0\ud800 and é"])
def test_what_is_kept_can_be_stored(text: str) -> None:
    shown = bounded(text, 100)
    assert "\0" not in shown
    shown.encode()


@pytest.mark.parametrize(
    "unit",
    [
        "password",
        "-password",
        "a-",
        "token=",
        "://a:",
        "bearer ",
        "a://",
        "'",
        "secret:",
        "x@",
        "_key",
    ],
)
def test_no_text_makes_the_search_for_secrets_slow(unit: str) -> None:
    """A handler chooses the text, and the search holds up every other handler of the process."""
    text = unit * (1_000_000 // len(unit))
    began = time.process_time()
    describe(ValueError(text))
    # (A search that looks at every two places of it takes hours.)
    assert time.process_time() - began < 5.0
