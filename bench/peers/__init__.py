"""The queues that are measured, by name, each with the settings that it is fastest with."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import MappingProxyType

from attrs import frozen

from .base import Peer


@frozen
class Kind:
    """A queue as it is measured.

    ``batch`` is how many jobs it takes at once, and ``share`` which part of the jobs of a drain it
    is given, so that a slow one takes no longer than the others.  ``library`` tells those that
    leasebook is to be faster than: Python libraries that somebody installs and uses.
    """

    where: str
    title: str
    batch: int = 500
    share: float = 1.0
    library: bool = True
    installed: bool = True

    @property
    def peer(self) -> type[Peer]:
        """Its class."""
        module, _, name = self.where.partition(":")
        found: type[Peer] = getattr(import_module(f".{module}", __name__), name)
        return found


KINDS = MappingProxyType(
    {
        "bare": Kind("bare:Bare", "bare SQL", library=False, installed=False),
        "leasebook": Kind("leasebook:Leasebook", "leasebook", library=False, installed=False),
        "pgqueuer": Kind("pgqueuer:PGQueuer", "PGQueuer 1.6"),
        "awa": Kind("awa:Awa", "awa 0.6", share=0.4),
        "chancy": Kind("chancy:Chancy", "Chancy 0.26", batch=1_000, share=0.2),
        "oban": Kind("oban:Oban", "Oban for Python 0.7", batch=100, share=0.2),
        "dbos": Kind("dbos:Dbos", "DBOS 3.4", batch=100, share=0.04),
        "absurd": Kind("absurd:Absurd", "Absurd 0.5", batch=50, share=0.04),
        "procrastinate": Kind("procrastinate:Procrastinate", "Procrastinate 3.10", 10, 0.04),
        "pq": Kind("pq:Pq", "python-pq 0.9", batch=4, share=0.006),
        "pgmq": Kind("pgmq:Pgmq", "pgmq's SQL", library=False, installed=False),
        "graphile": Kind("graphile:Graphile", "Graphile Worker 0.18 (Node)", library=False),
    }
)
#: Queues that people know and that cannot be had here: why.
NOT_MEASURED = MappingProxyType(
    {
        "Oban for Elixir": "its packages are on hex.pm; only PyPI and npm are used here",
        "River, for Go": "Go modules; only PyPI and npm are used here",
    }
)


@frozen
class Spec:
    """A queue as it is asked for: ``NAME``, ``NAME:BATCH``, or leasebook of another checkout.

    ``leasebook@../before`` measures the working tree in ``../before`` beside this one, in the same
    rounds: the way to see what a change is worth.
    """

    text: str
    name: str
    batch: int
    checkout: Path | None

    @classmethod
    def parse(cls, text: str) -> Spec:
        """Raises ValueError saying what is wrong."""
        rest, at, checkout = text.partition("@")
        name, _, batch = rest.partition(":")
        if name not in KINDS:
            raise ValueError(f"{name!r} is no queue: choose from {', '.join(KINDS)}")
        path = Path(checkout).resolve() if at else None
        if path is not None and not (path / "domain").is_dir():
            raise ValueError(f"{checkout!r} is no checkout of leasebook")
        if batch and not (batch.isdecimal() and int(batch)):
            raise ValueError(f"{batch!r} in {text!r} is no batch: give a whole number from 1")
        return cls(text, name, int(batch) if batch else KINDS[name].batch, path)

    @property
    def kind(self) -> Kind:
        """What is known of it."""
        return KINDS[self.name]

    @property
    def peer(self) -> type[Peer]:
        """Its class."""
        return self.kind.peer

    def jobs(self, jobs: int) -> int:
        """Its part of the jobs of a drain."""
        return max(100, round(jobs * self.kind.share))

    def open(self, dsn: str) -> Peer:
        """The queue on a database."""
        return self.peer(dsn, self.batch)
