"""A worker never falls back to the credentials of an owner, whatever the environment holds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leasebook import Book
from leasebook.infra.ports import StoreUnavailable
from tests.support.asking_server import AskingServer

OWNER = {
    "PGUSER": "owner",
    "PGPASSWORD": "owners-secret",
    "PGDATABASE": "owners-database",
    "PGHOST": "owner.invalid",
    "PGPASSFILE": "/nowhere",
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[AskingServer]:
    """A server that is named by the parts, in an environment full of an owner's credentials."""
    made = AskingServer()
    monkeypatch.delenv("LEASEBOOK_DSN", raising=False)
    monkeypatch.delenv("LEASEBOOK_WORKER_PASSWORD", raising=False)
    for name, value in OWNER.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LEASEBOOK_HOST", "127.0.0.1")
    monkeypatch.setenv("LEASEBOOK_PORT", str(made.port))
    monkeypatch.setenv("LEASEBOOK_DATABASE", "shop")
    yield made
    made.close()


def refused() -> None:
    store = Book().store()
    with pytest.raises(StoreUnavailable):
        store.beats()
    store.close()


def test_without_a_password_none_is_sent(server: AskingServer) -> None:
    refused()
    assert b"leasebook_worker" in server.told[0]
    assert b"shop" in server.told[0]
    assert not any(b"owner" in each for each in server.told)


def test_the_workers_own_password_is_sent(
    server: AskingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEASEBOOK_WORKER_PASSWORD", "workers-secret")
    refused()
    assert server.told[1].rstrip(b"\0") == b"workers-secret"
    assert not any(b"owner" in each for each in server.told)
