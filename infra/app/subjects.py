"""Is somebody still at it, and how did it end?  What applications ask about their work.

``alive`` and ``held`` are made for clean-ups: whoever finds a page that has been "being published"
for an hour asks here before setting it back.  ``status`` is for those who wait for a job.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload
from uuid import UUID

from ...domain import limits
from ...domain.errors import InvalidValue
from ...projections.status import Status
from ..caller_ports import Standing
from ..postgres.schema.name import Schema

if TYPE_CHECKING:
    from .typed import AsyncCaller, SyncCaller

Standings: TypeAlias = Mapping[str, Standing]
T = TypeVar("T")


class Subjects:
    """The part of a book that answers for subjects and jobs.

    The book says where: ``dsn`` and ``schema``.
    """

    if TYPE_CHECKING:

        @property
        def schema(self) -> str: ...
        @property
        def dsn(self) -> str: ...

    @overload
    def alive(self, caller: SyncCaller | None, subject: str) -> bool: ...
    @overload
    def alive(self, caller: AsyncCaller, subject: str) -> Awaitable[bool]: ...
    def alive(self, caller: Any, subject: str) -> Any:
        """Whether work for ``subject`` is queued, grouped, in the inbox, leased or to be retried.

        False for work that is done or has failed, held or not; ``held`` tells that.  The answer is
        as the caller's transaction sees it, its own enqueues included; with None as caller it is
        what is committed.  An item that joined a group counts under the group's subject, which is
        that of its first item.

        Raises InvalidValue for what cannot be a subject, NoTransaction as enqueue does, and
        without a caller StoreUnavailable.
        """
        return self._about(caller, (subject,), lambda found: found[subject].alive)

    @overload
    def alive_many(self, caller: SyncCaller | None, subjects: Iterable[str]) -> dict[str, bool]: ...
    @overload
    def alive_many(
        self, caller: AsyncCaller, subjects: Iterable[str]
    ) -> Awaitable[dict[str, bool]]: ...
    def alive_many(self, caller: Any, subjects: Iterable[str]) -> Any:
        """``alive`` for many subjects in one query: an answer for each of them, by subject."""
        if isinstance(subjects, str):
            raise InvalidValue("subjects", "a str", "give a list of subjects, or use alive")
        asked = tuple(dict.fromkeys(subjects))
        return self._about(
            caller, asked, lambda found: {subject: found[subject].alive for subject in asked}
        )

    @overload
    def held(self, caller: SyncCaller | None, subject: str) -> bool: ...
    @overload
    def held(self, caller: AsyncCaller, subject: str) -> Awaitable[bool]: ...
    def held(self, caller: Any, subject: str) -> Any:
        """Whether work for ``subject`` has failed and waits for an operator."""
        return self._about(caller, (subject,), lambda found: found[subject].held)

    @overload
    def status(self, caller: SyncCaller | None, job_id: UUID) -> Status | None: ...
    @overload
    def status(self, caller: AsyncCaller, job_id: UUID) -> Awaitable[Status | None]: ...
    def status(self, caller: Any, job_id: UUID) -> Any:
        """How a job stands for the public: queued, processing, succeeded or failed; None: unknown.

        A job that waits for a retry is queued, one whose lease has ended is processing until
        somebody says so.  The answer stays when the job's history is pruned.  ``caller`` is that of
        ``alive``.

        Raises InvalidValue for what is no UUID, NoTransaction as enqueue does, and without a caller
        StoreUnavailable.
        """
        from ..postgres.subjects import committed_status, status

        if not isinstance(job_id, UUID):  # pyright: ignore[reportUnnecessaryIsInstance]
            seen = f"a {type(job_id).__name__}"
            raise InvalidValue("job_id", seen, "give the UUID of a Receipt, or UUID(text)")
        if caller is None:
            return committed_status(Schema(self.schema), self.dsn, job_id)
        return status(Schema(self.schema), caller, job_id)

    def _standings(
        self, caller: object, subjects: tuple[str, ...]
    ) -> Standings | Awaitable[Standings]:
        from ..postgres.subjects import committed_standings, standings

        if caller is None:
            return committed_standings(Schema(self.schema), self.dsn, subjects)
        return standings(Schema(self.schema), caller, subjects)

    def _about(
        self, caller: object, subjects: tuple[str, ...], read: Callable[[Standings], T]
    ) -> T | Awaitable[T]:
        for subject in subjects:
            limits.check_text("subject", subject, limits.KEY_BYTES_MAX)
        found = self._standings(caller, subjects)
        if isinstance(found, Mapping):
            return read(found)
        return _read(found, read)


async def _read(found: Awaitable[Standings], read: Callable[[Standings], T]) -> T:
    return read(await found)
