"""Writing a bundle: line by line, so that it takes no memory, and whole or not at all."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import zstandard
from attrs import evolve as replace

from ...domain.log import Recorded
from ...projections.replay.facts import AuditLine
from .errors import BundleThere
from .lines import audit_line, event_line
from .manifest import AUDIT, EVENTS, MANIFEST, Manifest, Part

#: How much text is compressed at a time.
CHUNK_CHARS = 256 * 1024


class Redacting(Protocol):
    """What takes values out; ``projections.redact.Redaction`` does."""

    def recorded(self, recorded: Recorded) -> Recorded:
        """An entry of the log without what must not leave."""
        ...

    def line(self, line: AuditLine) -> AuditLine:
        """A line of the audit log without what must not leave."""
        ...


def write_bundle(
    path: Path,
    manifest: Manifest,
    events: Iterable[Recorded],
    audit: Iterable[AuditLine],
    redaction: Redacting | None,
) -> Manifest:
    """Write events, by job and version, and audit lines; the manifest with its parts.

    Whoever reads the folder meanwhile sees no half of it.  Raises BundleThere, and OSError when the
    folder does not take it.
    """
    if path.exists():
        raise BundleThere(path)
    if redaction is not None:
        events, audit = map(redaction.recorded, events), map(redaction.line, audit)
    half = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with ZipFile(half, "w", ZIP_STORED) as file:
            parts = {
                EVENTS: _write(file, EVENTS, map(event_line, events)),
                AUDIT: _write(file, AUDIT, map(audit_line, audit)),
            }
            whole = replace(manifest, parts=parts)
            file.writestr(ZipInfo(MANIFEST), whole.text())
        os.link(half, path)
    except FileExistsError:
        raise BundleThere(path) from None
    finally:
        half.unlink(missing_ok=True)
    return whole


def _write(file: ZipFile, name: str, lines: Iterable[str]) -> Part:
    compressor = zstandard.ZstdCompressor(write_checksum=True).compressobj()
    sha256, count, size = hashlib.sha256(), 0, 0
    with file.open(ZipInfo(name), "w", force_zip64=True) as part:
        for chunk in _chunks(lines):
            count += chunk.count(b"\n")
            if data := compressor.compress(chunk):
                sha256.update(data)
                size += part.write(data)
        data = compressor.flush()
        sha256.update(data)
        size += part.write(data)
    return Part(count, size, sha256.hexdigest())


def _chunks(lines: Iterable[str]) -> Iterator[bytes]:
    """Lines in chunks that are worth a call."""
    held: list[str] = []
    chars = 0
    for line in lines:
        held.append(line)
        chars += len(line)
        if chars >= CHUNK_CHARS:
            yield ("\n".join(held) + "\n").encode()
            held, chars = [], 0
    if held:
        yield ("\n".join(held) + "\n").encode()
