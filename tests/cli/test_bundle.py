"""Exporting an incident, and asking the file what the database was asked."""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import ZipFile

import pytest
import zstandard

from leasebook.infra.bundle.manifest import EVENTS, MANIFEST
from leasebook.infra.cli.replay import COMMANDS
from tests.cli.conftest import Leasebook
from tests.support.facts import died
from tests.support.incident import WINDOW, incident, tell
from tests.support.lives import job_id

#: Every question there is, in the words of the command line.
QUESTIONS = {
    "job": ("job", str(job_id(1))),
    "at": ("at", "2026-03-01T14:03:40Z"),
    "wait": ("wait", *WINDOW),
    "depth": ("depth", *WINDOW),
    "faults": ("faults", *WINDOW),
    "workers": ("workers", *WINDOW),
    "timeline": ("timeline", *WINDOW),
    "diff": ("diff", "2026-03-01T14:03:30Z", "2026-03-01T14:04:10Z"),
    "check": ("check", "--to", WINDOW[-1]),
}
EVERYTHING = ("--hide", "names", "--hide", "queues", "--hide", "workers")
NOWHERE = {"LEASEBOOK_DSN": "host=nowhere.invalid"}
FORMATS = ("table", "json", "ndjson")


@pytest.fixture
def dsn(database_dsn: str) -> str:
    incident(database_dsn)
    return database_dsn


def export(leasebook: Leasebook, dsn: str, file: str, *words: str) -> None:
    answer = leasebook("replay", "export", file, *words, *WINDOW, "--dsn", dsn)
    assert answer.code == 0, answer.err


def text_of(path: Path) -> str:
    """All that is in a bundle, uncompressed."""
    with ZipFile(path) as file:
        parts = [name for name in file.namelist() if name != MANIFEST]
        texts = [
            zstandard.ZstdDecompressor().decompressobj().decompress(file.read(name))
            for name in parts
        ]
        manifest = json.loads(file.read(MANIFEST))
        for part in manifest["parts"].values():
            part.pop("sha256")  # random letters a to f, in which a short name may stand
        return json.dumps(manifest) + b"".join(texts).decode()


def body(text: str) -> list[str]:
    """An answer without the window that a command without one is given."""
    ends = ('  "from":', '  "to":')
    return [line for line in text.splitlines() if not line.startswith(ends)]


def test_every_command_is_asked_here() -> None:
    assert {command.name for command in COMMANDS} - {"export", "import"} == set(QUESTIONS)


@pytest.mark.acceptance("E10")
@pytest.mark.parametrize("name", QUESTIONS)
def test_the_file_answers_as_the_database(
    leasebook: Leasebook, dsn: str, folder: Path, name: str
) -> None:
    export(leasebook, dsn, "incident.zip", "--with-values")
    for form in FORMATS:
        words = ("replay", *QUESTIONS[name], "--format", form)
        live = leasebook(*words, "--dsn", dsn)
        filed = leasebook(*words, "--bundle", "incident.zip")
        assert (filed.code, filed.err) == (live.code, live.err)
        assert body(filed.out) == body(live.out)


@pytest.mark.acceptance("E10")
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_redacted_file_answers_too(
    leasebook: Leasebook, dsn: str, folder: Path, name: str
) -> None:
    """With no database in reach, and as many lines and records."""
    export(leasebook, dsn, "incident.zip", *EVERYTHING)
    for form in FORMATS:
        words = ("replay", *QUESTIONS[name], "--format", form)
        live = leasebook(*words, "--dsn", dsn)
        filed = leasebook(*words, "--bundle", "incident.zip", env=NOWHERE)
        assert filed.code == live.code
        assert len(filed.out.splitlines()) == len(live.out.splitlines())


@pytest.mark.acceptance("E10")
@pytest.mark.parametrize(
    "words",
    [("incident", "--out", "report.html"), ("simulate", "--set", "concurrency=1")],
    ids=["incident", "simulate"],
)
def test_reports_and_simulations_need_no_database_either(
    leasebook: Leasebook, dsn: str, folder: Path, words: tuple[str, ...]
) -> None:
    export(leasebook, dsn, "incident.zip", *EVERYTHING)
    live = leasebook(*words, *WINDOW, "--dsn", dsn)
    filed = leasebook(*words, *WINDOW, "--bundle", "incident.zip", env=NOWHERE)
    assert filed.code == live.code
    assert len(filed.out.splitlines()) == len(live.out.splitlines())


@pytest.mark.acceptance("E10")
def test_a_bundle_holds_no_value(leasebook: Leasebook, dsn: str, folder: Path) -> None:
    secrets = ("a.md", "row 7", "'x'")
    export(leasebook, dsn, "values.zip", "--with-values")
    export(leasebook, dsn, "redacted.zip")
    export(leasebook, dsn, "hidden.zip", *EVERYTHING)
    values, redacted, hidden = (
        text_of(folder / f"{name}.zip") for name in ("values", "redacted", "hidden")
    )
    for secret in secrets:
        assert secret in values
        assert secret not in redacted
    for name in ("sync_page", "mail", "ada", "grace"):
        assert name in redacted
        assert name not in hidden
    assert json.loads(ZipFile(folder / "redacted.zip").read(MANIFEST))["redacted"] is True


def test_two_exports_cannot_be_joined(leasebook: Leasebook, dsn: str, folder: Path) -> None:
    export(leasebook, dsn, "one.zip")
    export(leasebook, dsn, "two.zip")
    one, two = (text_of(folder / f"{name}.zip") for name in ("one", "two"))
    words = {text.split('"')[0] for text in one.split('"~')[1:]}
    assert words
    assert not any(word in two for word in words)


def test_a_bundle_is_redacted_on(leasebook: Leasebook, dsn: str, folder: Path) -> None:
    export(leasebook, dsn, "values.zip", "--with-values")
    answer = leasebook("replay", "export", "less.zip", "--bundle", "values.zip")
    assert answer.code == 0, answer.err
    assert "row 7" not in text_of(folder / "less.zip")
    assert leasebook("replay", "check", "--bundle", "less.zip").code == 0


def test_only_some_jobs(leasebook: Leasebook, dsn: str, folder: Path) -> None:
    export(leasebook, dsn, "mail.zip", "--queue", "mail")
    with ZipFile(folder / "mail.zip") as file:
        manifest = json.loads(file.read(MANIFEST))
    assert manifest["filters"] == ["queue"]
    assert manifest["parts"][EVENTS]["lines"] == 3


def test_what_is_refused(leasebook: Leasebook, dsn: str, folder: Path) -> None:
    export(leasebook, dsn, "incident.zip")
    again = leasebook("replay", "export", "incident.zip", *WINDOW, "--dsn", dsn)
    assert (again.code, "there is a file already" in again.err) == (2, True)
    nowhere = leasebook("replay", "export", "no/such/folder.zip", *WINDOW, "--dsn", dsn)
    assert (nowhere.code, "cannot be written: No such file" in nowhere.err) == (2, True)
    outside = leasebook("replay", "at", "2026-04-01T00:00:00Z", "--bundle", "incident.zip")
    assert (outside.code, "the bundle holds" in outside.err) == (2, True)
    both = leasebook("replay", "export", "x.zip", "--with-values", "--hide", "names", "--dsn", dsn)
    assert (both.code, "takes nothing out" in both.err) == (2, True)
    Path("broken.zip").write_bytes(b"PK nothing")
    broken = leasebook("replay", "check", "--bundle", "broken.zip")
    assert (broken.code, "it is no bundle" in broken.err) == (2, True)


def test_an_export_sees_one_snapshot(leasebook: Leasebook, dsn: str, folder: Path) -> None:
    """The manifest tells which, so that a later export can be laid beside it."""
    tell(dsn, died(50, "grace#2"))
    export(leasebook, dsn, "incident.zip")
    with ZipFile(folder / "incident.zip") as file:
        position = json.loads(file.read(MANIFEST))["position"]
    assert position["snapshot"].count(":") == 2
    assert int(position["system"]) > 0


@pytest.mark.acceptance("E10")
def test_a_bundle_in_a_schema_of_its_own(leasebook: Leasebook, dsn: str, folder: Path) -> None:
    """It answers the same, and nothing ever runs from it."""
    export(leasebook, dsn, "incident.zip", "--with-values")
    words = ("--dsn", dsn, "--schema", "Incident-42")
    done = leasebook("replay", "import", "incident.zip", *words)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("schema Incident-42: 16 events and 4 audit lines")
    for name in ("wait", "faults", "workers", "depth"):
        live = leasebook("replay", *QUESTIONS[name], "--dsn", dsn)
        assert leasebook("replay", *QUESTIONS[name], *words).out == live.out
    assert leasebook("list", *words).out == "no unfinished or held job matches\n"
    repair = leasebook("projection", "repair", *words)
    assert (repair.code, "would run again" in repair.err) == (2, True)
    window = leasebook("replay", "export", "again.zip", *WINDOW, *words)
    assert (window.code, "written in cluster bundle" in window.err) == (2, True)
    again = leasebook("replay", "import", "incident.zip", *words, "--json")
    assert (again.code, again.document["error"]["code"]) == (2, "schema_in_use")
