"""The part of the book that looks after its claim table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from ..rebuild_ports import ClaimTable, ShadowTable
    from .maintenance import Maintenance


class Upkeep:
    """What holds the claim table against the log, as ports and as job types.

    The book says where: ``dsn`` and ``schema``, and registers handlers with ``job``.
    """

    if TYPE_CHECKING:

        @property
        def schema(self) -> str: ...
        @property
        def dsn(self) -> str: ...

    def maintenance(self, *, queue: str = "default") -> Maintenance:
        """Register verify, repair and rebuild of the claim table as job types without arguments.

        Their jobs are enqueued as any other.  Rebuild needs a worker whose role owns the tables.
        Raises InvalidValue for the queue, NameTaken when it was called before.
        """
        from .maintenance import maintenance

        return maintenance(cast(Any, self).job, self.claim_table, self.shadow, queue)

    def claim_table(self) -> ClaimTable:
        """The claim table, to hold it against the log with ``infra.app.rebuild``."""
        from ..postgres.claim_table import PostgresClaimTable

        return PostgresClaimTable(self.dsn, self.schema)

    def shadow(self) -> ShadowTable:
        """The claim table, to make it anew from the log with ``infra.app.shadow``."""
        from ..postgres.shadow import PostgresShadow

        return PostgresShadow(self.dsn, self.schema)
