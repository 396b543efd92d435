"""Locks of the in-memory database: rows, workers, group keys and duties alike.

A lock is held to the end of its transaction.  What PostgreSQL would wait for raises WouldBlock
inside; who catches it decides between waiting, telling a scheduler, and giving up.
"""

from __future__ import annotations

from collections.abc import Hashable
from threading import get_ident

from attrs import define, field

from ...domain.errors import LeasebookError


@define(eq=False)
class Owner:
    """Who holds locks: one transaction, and the thread that began it."""

    xid: int
    thread: int = field(factory=get_ident)
    waits_for: Hashable | None = None


class WouldBlock(LeasebookError):
    """A write met something that another open transaction has locked; PostgreSQL would wait here.

    Nothing of the refused call was done and the transaction goes on: call again once transaction
    ``holder`` has ended.  Raised only when waiting could not help, because the same thread must
    end the other transaction first.
    """

    code = "would_block"

    def __init__(self, key: Hashable, holder: Owner) -> None:
        super().__init__(
            f"{key!r} is locked by open transaction {holder.xid}. End that one, then call again."
        )
        self.key = key
        self.holder = holder.xid


class Held(Exception):
    """Inside: ``key`` is locked by ``holder``."""

    def __init__(self, key: Hashable, holder: Owner) -> None:
        super().__init__(key)
        self.key = key
        self.holder = holder


class Locks:
    """Who holds what.  ``shared`` locks exclude exclusive ones only."""

    def __init__(self) -> None:
        self._exclusive: dict[Hashable, Owner] = {}
        self._shared: dict[Hashable, list[Owner]] = {}

    def holder(self, key: Hashable, owner: Owner, *, shared: bool = False) -> Owner | None:
        """Another owner that keeps ``owner`` from ``key``, or None when it is free for it."""
        exclusive = self._exclusive.get(key)
        if exclusive is not None and exclusive is not owner:
            return exclusive
        if shared:
            return None
        return next((each for each in self._shared.get(key, ()) if each is not owner), None)

    def attempt(self, key: Hashable, owner: Owner) -> bool:
        """Lock ``key`` exclusively unless another owner keeps it; whether it was locked."""
        if self.holder(key, owner) is not None:
            return False
        self._exclusive[key] = owner
        return True

    def take(self, key: Hashable, owner: Owner, *, shared: bool = False) -> None:
        """Lock ``key``.  Raises Held when another owner keeps it."""
        holder = self.holder(key, owner, shared=shared)
        if holder is not None:
            raise Held(key, holder)
        if not shared:
            self._exclusive[key] = owner
        elif owner not in (holders := self._shared.setdefault(key, [])):
            holders.append(owner)

    def release(self, owner: Owner) -> None:
        """Give back everything that ``owner`` holds."""
        self._exclusive = {key: each for key, each in self._exclusive.items() if each is not owner}
        kept = {
            key: [each for each in holders if each is not owner]
            for key, holders in self._shared.items()
        }
        self._shared = {key: holders for key, holders in kept.items() if holders}

    def closes_circle(self, owner: Owner, holder: Owner) -> bool:
        """Whether ``holder`` waits, through whomever, for ``owner``: a deadlock if it waits too."""
        seen: list[Owner] = []
        current: Owner | None = holder
        while current is not None and current not in seen:
            seen.append(current)
            if current is owner:
                return True
            key = current.waits_for
            current = None if key is None else self.holder(key, current)
        return False
