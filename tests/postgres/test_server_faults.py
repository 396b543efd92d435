"""The embedded server when its users, its keeper or itself are killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import psycopg
import pytest

from leasebook.infra.postgres.server import ServerLease, embedded_server
from tests.support.servers import Outside, UserProcess, answers, wait_until

pytestmark = pytest.mark.fault


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Outside]:
    seen = Outside(tmp_path / "data")
    yield seen
    seen.clean()


def lease(outside: Outside) -> ServerLease:
    return embedded_server(outside.data_dir, settings={"fsync": "off"}, linger_seconds=0)


def test_eight_first_users_at_once_get_one_server(outside: Outside) -> None:
    with ExitStack() as stack:
        users = [stack.enter_context(UserProcess(outside.data_dir)) for _ in range(8)]
        assert len({user.line() for user in users}) == 1
        log = outside.folder.log.read_text("utf-8")
        assert log.count("starting PostgreSQL") == 1
        for user in users[:4]:
            user.leave()
        assert outside.running
        for user in users[4:]:
            user.kill()
    outside.wait_gone()


def test_the_server_ends_when_its_only_user_is_killed(outside: Outside) -> None:
    with UserProcess(outside.data_dir) as user:
        user.line()
        user.kill()
        outside.wait_gone()
    with lease(outside) as server:
        assert answers(server.dsn)
    outside.wait_gone()


def test_a_user_killed_while_it_starts_the_server(outside: Outside) -> None:
    with UserProcess(outside.data_dir) as user:
        wait_until(lambda: outside.folder.new_cluster.exists(), "initdb has begun")
        user.kill()
        with lease(outside) as server:
            assert answers(server.dsn)
    outside.wait_gone()


def test_keeper_killed_during_initdb(outside: Outside) -> None:
    with UserProcess(outside.data_dir) as user:
        wait_until(lambda: (outside.folder.new_cluster / "PG_VERSION").exists(), "initdb has begun")
        os.kill(outside.keeper_pid, signal.SIGKILL)
        # The waiting user starts another keeper, which waits for the orphan and begins again.
        assert answers(user.line())
        assert not outside.folder.new_cluster.exists()
        user.leave()
    outside.wait_gone()


def test_keeper_killed_then_another_user_adopts(outside: Outside) -> None:
    with UserProcess(outside.data_dir) as user:
        user.line()
        postmaster = outside.postmaster_pid
        os.kill(outside.keeper_pid, signal.SIGKILL)
        wait_until(lambda: not outside.kept, "the keeper is dead")
        with lease(outside) as server:
            assert outside.postmaster_pid == postmaster
            user.kill()
            assert answers(server.dsn)
            assert outside.kept
    outside.wait_gone()


def test_keeper_killed_and_no_user_after_it(outside: Outside) -> None:
    server = lease(outside)
    os.kill(outside.keeper_pid, signal.SIGKILL)
    wait_until(lambda: not outside.kept, "the keeper is dead")
    assert answers(server.dsn)
    server.close()
    outside.wait_gone()


def test_keeper_terminated_stops_the_server(outside: Outside) -> None:
    with lease(outside):
        os.kill(outside.keeper_pid, signal.SIGTERM)
        outside.wait_gone()
    with lease(outside) as server:
        assert answers(server.dsn)
    outside.wait_gone()


def test_postmaster_killed_comes_back_with_its_data(outside: Outside) -> None:
    with lease(outside) as server:
        with psycopg.connect(server.dsn) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        killed = outside.postmaster_pid
        os.kill(killed, signal.SIGKILL)
        with lease(outside) as again, psycopg.connect(again.dsn) as connection:
            assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)
        # The first user's server is back under the same address.
        assert again.dsn == server.dsn
        assert outside.postmaster_pid != killed
    outside.wait_gone()


def test_everything_killed_at_once(outside: Outside) -> None:
    with UserProcess(outside.data_dir) as user:
        user.line()
        pids = (outside.keeper_pid, outside.postmaster_pid)
        user.kill()
        for pid in pids:
            with suppress(ProcessLookupError):  # It may be on its way out already.
                os.kill(pid, signal.SIGKILL)
    with lease(outside) as server:
        assert answers(server.dsn)
    outside.wait_gone()


def test_a_stale_pid_file_with_a_living_pid_is_no_server(outside: Outside) -> None:
    with lease(outside):
        pass
    outside.wait_gone()
    socket_lock = outside.folder.socket_dir / ".s.PGSQL.5432.lock"
    for stale in (outside.folder.cluster / "postmaster.pid", socket_lock):
        stale.write_text(f"{os.getppid()}\n{outside.folder.cluster}\n1\n5432\n", "utf-8")
    with lease(outside) as server:
        assert answers(server.dsn)
    outside.wait_gone()


FORKING = """
import os, sys
from pathlib import Path
from leasebook.infra.postgres.server import embedded_server
server = embedded_server(Path(sys.argv[1]), linger_seconds=0, settings={"fsync": "off"})
print(server.dsn, flush=True)
if os.fork() == 0:
    print(os.getpid(), flush=True)
    sys.stdin.read()
    os._exit(0)
server.close()
print("closed", flush=True)
os.wait()
"""


def test_a_forked_child_keeps_the_lease(outside: Outside) -> None:
    with UserProcess(outside.data_dir, FORKING) as user:
        dsn = user.line()
        lines = {user.line(), user.line()}
        assert "closed" in lines
        assert answers(dsn)
        user.leave()
    outside.wait_gone()


SPAWNING = """
import subprocess, sys
from pathlib import Path
from leasebook.infra.postgres.server import embedded_server
server = embedded_server(Path(sys.argv[1]), linger_seconds=0, settings={"fsync": "off"})
child = subprocess.Popen(["sleep", "60"], close_fds=False, stdout=subprocess.DEVNULL)
print(child.pid, flush=True)
sys.stdin.read()
"""


def test_a_program_that_a_user_started_does_not_keep_the_lease(outside: Outside) -> None:
    with UserProcess(outside.data_dir, SPAWNING) as user:
        program = int(user.line())
        user.kill()
        try:
            outside.wait_gone()
            os.kill(program, 0)
        finally:
            os.kill(program, signal.SIGKILL)
