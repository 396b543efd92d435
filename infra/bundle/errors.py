"""Why a bundle was not read or written."""

from __future__ import annotations

from pathlib import Path

from ...domain.errors import LeasebookError


class BundleDamaged(LeasebookError):
    """A file is no bundle, or not the one that was written."""

    code = "bundle_damaged"

    def __init__(self, path: Path, seen: str) -> None:
        super().__init__(
            f"cannot read {path}: {seen}. Get the file again, or export it anew: nothing of it was "
            "used."
        )
        self.path = path


class BundleNewer(LeasebookError):
    """A bundle is in a format that this release does not know."""

    code = "bundle_newer"

    def __init__(self, path: Path, format: int, known: int, writer: str) -> None:
        super().__init__(
            f"cannot read {path}: it is in format {format}, written by leasebook {writer}, and "
            f"this release reads up to format {known}. Upgrade leasebook to {writer} or later."
        )
        self.path = path


class BundleThere(LeasebookError):
    """A bundle was not written because something stands in its place."""

    code = "bundle_there"

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"cannot write {path}: there is a file already. Name another, or remove it."
        )
        self.path = path
