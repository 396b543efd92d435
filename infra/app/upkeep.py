"""The part of the book that looks after its claim table and its log."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

from ...domain.errors import InvalidValue
from ...domain.limits import check_count, shown
from ..pruning_ports import BATCH_MAX, Pruned

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..rebuild_ports import ClaimTable, ShadowTable
    from .maintenance import Maintenance


class Upkeep:
    """What holds the claim table against the log, as ports and as job types, and prunes the log.

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

    def prune(
        self,
        older_than: timedelta,
        *,
        batch: int = BATCH_MAX,
        told: Callable[[Pruned], None] | None = None,
    ) -> Pruned:
        """Take the streams of jobs that ended longer ago than ``older_than`` out of the log.

        What has not ended, is held, or was not read yet by who reads the log by windows, stays.
        Ages are by the database's clock.  ``batch`` jobs (1 to 1,000) are looked at in one
        transaction, after which ``told`` hears how far it is.  How each job ended is kept, and so
        are keys of requests.

        Raises InvalidValue, SchemaIncomplete, PruningRefused, and StoreUnavailable when the
        database does not answer; what was pruned until then stays pruned.
        """
        from ..postgres.pruning import PostgresPruning
        from ..postgres.schema.name import Schema

        if not isinstance(older_than, timedelta) or older_than < timedelta(0):  # pyright: ignore[reportUnnecessaryIsInstance]
            remedy = "give a timedelta that is not negative"
            raise InvalidValue("older_than", shown(older_than), remedy)
        check_count("batch", batch, least=1, most=BATCH_MAX)
        return PostgresPruning(self.dsn, Schema(self.schema)).prune(older_than, batch, told)
