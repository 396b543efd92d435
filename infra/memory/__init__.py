"""The store in memory, for the simulator and for users' tests."""

from __future__ import annotations

from .database import MemoryDatabase
from .locks import WouldBlock
from .log import MemoryLog
from .producer import MemoryProducer
from .store import MemoryStore
from .transaction import MemoryTransaction
from .wakeup import MemoryWakeup

__all__ = [
    "MemoryDatabase",
    "MemoryLog",
    "MemoryProducer",
    "MemoryStore",
    "MemoryTransaction",
    "MemoryWakeup",
    "WouldBlock",
]
