"""Reading a bundle: first its hashes, then the same questions that a database answers."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Self
from uuid import UUID
from zipfile import BadZipFile, ZipFile
from zlib import error as ZlibError

import zstandard

from ...domain.log import Recorded
from ...projections.replay.facts import AuditLine
from .errors import BundleDamaged, BundleNewer
from .lines import audit_of, events_of, is_of
from .manifest import AUDIT, EVENTS, FORMAT, MANIFEST, PARTS, Manifest, Part, manifest_of

READ_BYTES = 1024 * 1024
#: A manifest is small; a larger one is none.
MANIFEST_BYTES_MAX = 1024 * 1024
#: Reading may need no more memory than this for the window of the compression.
WINDOW_BYTES_MAX = 128 * 1024 * 1024


class BundleHistory:
    """Implements ``replay_ports.History`` on a file.  Its parts are checked when it is opened.

    Raises BundleDamaged for a file that is no whole bundle, BundleNewer for one of a later format,
    OSError for one that cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file = ZipFile(path)
        except BadZipFile:
            raise BundleDamaged(path, "it is no bundle, or its end is missing") from None
        try:
            self.manifest = self._manifest()
            for name in PARTS:
                self._check(name, self.manifest.parts[name])
        except BaseException:
            self._file.close()
            raise

    @property
    def known_from(self) -> datetime:
        """Since when everything that happened is in the file."""
        return self.manifest.known_from

    def now(self) -> datetime:
        """The end of its window: nothing is known of later."""
        return self.manifest.until

    def events(
        self, until: datetime, since: datetime | None = None, job: UUID | None = None
    ) -> Iterator[Recorded]:
        """The events not after ``until``, by job and version; of one ``job`` only its own."""
        lines = self._lines(EVENTS)
        chosen = lines if job is None else (line for line in lines if is_of(job, line))
        for recorded in events_of(chosen):
            if recorded.at <= until:
                yield recorded

    def pruned(self, job: UUID) -> None:
        """A file keeps nothing of a job beside its stream."""

    def audit(self, until: datetime) -> Sequence[AuditLine]:
        """The lines not after ``until``, in order of time."""
        lines = [line for line in map(audit_of, self._lines(AUDIT)) if line.at <= until]
        return sorted(lines, key=lambda line: line.at)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _manifest(self) -> Manifest:
        try:
            with self._file.open(MANIFEST) as part:
                document: Any = json.loads(part.read(MANIFEST_BYTES_MAX))
            format, writer = document["format"], str(document["leasebook"])
            if isinstance(format, int) and format > FORMAT:
                raise BundleNewer(self._path, format, FORMAT, writer)
            return manifest_of(document)
        except (KeyError, TypeError, ValueError, BadZipFile, ZlibError) as error:
            raise BundleDamaged(self._path, f"its manifest cannot be read ({error})") from None

    def _check(self, name: str, part: Part) -> None:
        sha256, size = hashlib.sha256(), 0
        try:
            with self._file.open(name) as file:
                while data := file.read(READ_BYTES):
                    sha256.update(data)
                    size += len(data)
        except (KeyError, BadZipFile, EOFError, ZlibError) as error:
            raise BundleDamaged(self._path, f"its part {name} cannot be read ({error})") from None
        if sha256.hexdigest() != part.sha256:
            seen = f"its part {name} has {size:,} bytes with another hash than its manifest says"
            raise BundleDamaged(self._path, f"{seen} of its {part.bytes:,}")

    def _lines(self, name: str) -> Iterator[str]:
        """The lines of a part, read anew from its beginning."""
        decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW_BYTES_MAX)
        try:
            with self._file.open(name) as part, decompressor.stream_reader(part) as raw:
                # newline: a line ends with \n only, whatever a text in it holds.
                yield from io.TextIOWrapper(
                    io.BufferedReader(raw, READ_BYTES), "utf-8", newline="\n"
                )
        except (zstandard.ZstdError, UnicodeDecodeError) as error:
            raise BundleDamaged(self._path, f"its part {name} cannot be read ({error})") from None
