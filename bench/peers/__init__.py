"""The queues that are measured, by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from attrs import frozen

from .bare import Bare
from .base import Peer
from .leasebook import Leasebook
from .pgqueuer import PGQueuer

KINDS: dict[str, Callable[[str, int], Peer]] = {
    "leasebook": Leasebook,
    "pgqueuer": PGQueuer,
    "bare": Bare,
}
BATCH = 500


@frozen
class Spec:
    """A queue as it is asked for: ``NAME``, ``NAME:BATCH``, or leasebook of another checkout.

    ``leasebook@../before`` measures the working tree in ``../before`` beside this one, in the same
    rounds: the way to see what a change is worth.
    """

    text: str
    kind: str
    batch: int
    checkout: Path | None

    @classmethod
    def parse(cls, text: str) -> Spec:
        """Raises ValueError saying what is wrong."""
        rest, at, checkout = text.partition("@")
        kind, _, batch = rest.partition(":")
        if kind not in KINDS:
            raise ValueError(f"{kind!r} is no queue: choose from {', '.join(KINDS)}")
        path = Path(checkout).resolve() if at else None
        if path is not None and not (path / "domain").is_dir():
            raise ValueError(f"{checkout!r} is no checkout of leasebook")
        return cls(text, kind, int(batch) if batch else BATCH, path)

    def open(self, dsn: str) -> Peer:
        """The queue on a database."""
        return KINDS[self.kind](dsn, self.batch)
