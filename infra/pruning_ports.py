"""What pruning the log gives."""

from __future__ import annotations

from attrs import frozen

from ..domain.errors import LeasebookError

#: Jobs that one transaction looks at, at most.
BATCH_MAX = 1_000


@frozen
class Pruned:
    """What a pruning did: jobs that it looked at, and streams that it took out.

    ``kept`` jobs are old enough and over, but ``reader``, who reads the log by windows, has not
    read all of them yet.
    """

    looked: int = 0
    pruned: int = 0
    kept: int = 0
    reader: str | None = None


class PruningRefused(LeasebookError):
    """The database lets this role, or nobody yet, prune the log."""

    code = "pruning_refused"

    def __init__(self, schema: str, seen: str) -> None:
        appoint = f"{schema}.appoint_retention()"
        super().__init__(
            f"cannot prune the log of schema {schema}: {seen}. Prune as the role that owns the "
            f"tables; and if leasebook migrate could not make the role leasebook_retention, let "
            f"somebody who may make roles run: select {appoint}"
        )
