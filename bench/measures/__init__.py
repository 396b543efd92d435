"""What is measured, by name."""

from __future__ import annotations

from types import MappingProxyType

from . import calls, drains, lasting
from .bench import SIZES, Bench, Measure, Size

__all__ = ["MEASURES", "SIZES", "Bench", "Measure", "Size"]

MEASURES: MappingProxyType[str, Measure] = MappingProxyType(
    {
        "drain": drains.one,
        "two": drains.two,
        "bulk": drains.bulk,
        "single": calls.single,
        "latency": calls.latency,
        "latency-two": calls.latency_two,
        "hot": calls.hot,
        "notify": calls.notify,
        "growth": drains.growth,
        "snapshot": lasting.snapshot,
        "idle": lasting.idle,
    }
)
