"""A bundle that was damaged on its way, or comes from a later release, says so; nothing is used."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from struct import unpack
from zipfile import ZipFile

import pytest

from leasebook.domain.log import Recorded
from leasebook.infra.bundle.errors import BundleDamaged, BundleNewer, BundleThere
from leasebook.infra.bundle.manifest import EVENTS, MANIFEST, Manifest
from leasebook.infra.bundle.reader import BundleHistory
from leasebook.infra.bundle.writer import write_bundle
from tests.support.facts import log, started
from tests.support.lives import Life, at, job_id

MADE = Manifest("0.4.0", at(0), at(60), at(-60), None, False, (), (), {})
LOG: list[Recorded] = log(
    Life().enqueue(0).lease(1).complete(2), Life().enqueue(5, number=2, args='"\u2028\\n"')
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "incident.zip"
    write_bundle(path, MADE, LOG, [started(1), started(-1, "w2")], None)
    return path


def test_it_holds_what_was_written(file: Path) -> None:
    with BundleHistory(file) as bundle:
        assert bundle.now() == at(60)
        assert bundle.known_from == at(-60)
        assert list(bundle.events(at(60))) == LOG
        assert list(bundle.events(at(1))) == LOG[:2]
        assert list(bundle.events(at(60), job=job_id(2))) == LOG[3:]
        assert [line.worker for line in bundle.audit(at(60))] == ["w2", "w1"]
        assert bundle.manifest.parts[EVENTS].lines == len(LOG)


def test_it_is_written_whole_or_not_at_all(file: Path) -> None:
    def breaks() -> Iterator[Recorded]:
        yield LOG[0]
        raise ZeroDivisionError

    before = file.read_bytes()
    with pytest.raises(BundleThere, match="Name another"):
        write_bundle(file, MADE, LOG, [], None)
    other = file.with_name("other.zip")
    with pytest.raises(ZeroDivisionError):
        write_bundle(other, MADE, breaks(), [], None)
    assert list(file.parent.iterdir()) == [file]
    assert file.read_bytes() == before


def content(whole: bytes, header: int, size: int) -> range:
    """Where the bytes of a member of a zip are; its name and extra field come before."""
    name, extra = unpack("<HH", whole[header + 26 : header + 30])
    begin = header + 30 + name + extra
    return range(begin, begin + size)


def test_no_byte_can_be_changed_unnoticed(file: Path) -> None:
    """Every byte of the parts and of the manifest, one after another."""
    whole = file.read_bytes()
    with ZipFile(file) as opened:
        spans = [content(whole, info.header_offset, info.file_size) for info in opened.infolist()]
    changed = 0
    for place in chain(*spans):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises((BundleDamaged, BundleNewer)):
            BundleHistory(file)
        changed += 1
    assert changed > 500


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.9, 0.999])
def test_one_that_was_cut_off_is_refused(file: Path, keep: float) -> None:
    whole = file.read_bytes()
    file.write_bytes(whole[: int(len(whole) * keep)])
    with pytest.raises(BundleDamaged, match="Get the file again"):
        BundleHistory(file)


def test_a_part_of_another_bundle_is_named(file: Path, tmp_path: Path) -> None:
    """A zip can be whole and not be what the manifest says."""
    mixed = tmp_path / "mixed.zip"
    with ZipFile(file) as old, ZipFile(mixed, "w") as new:
        for info in old.infolist():
            data = old.read(info)
            new.writestr(info.filename, data[:-1] if info.filename == EVENTS else data)
    with pytest.raises(BundleDamaged, match=r"events\.ndjson\.zst has .* another hash"):
        BundleHistory(mixed)


def test_a_later_format_is_refused_with_the_release_that_wrote_it(
    file: Path, tmp_path: Path
) -> None:
    newer = tmp_path / "newer.zip"
    with ZipFile(newer, "w") as made:
        made.writestr(MANIFEST, json.dumps({"format": 7, "leasebook": "9.1.0", "what": "else"}))
    with pytest.raises(BundleNewer, match=r"Upgrade leasebook to 9\.1\.0") as refused:
        BundleHistory(newer)
    assert "format 7" in str(refused.value)
