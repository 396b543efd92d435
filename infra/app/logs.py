"""structlog loggers whose lines go through the standard library.

So any application's handlers, levels and formatters see them.  The message reads by itself
(``page synced job=… size=12``); the same facts are on the record as ``leasebook``, a dict.
"""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import Any

import structlog


def _render(
    logger: Any, method: str, event_dict: MutableMapping[str, Any]
) -> tuple[tuple[str], dict[str, Any]]:
    event = str(event_dict.pop("event", ""))
    kept = {name: event_dict.pop(name) for name in ("exc_info",) if name in event_dict}
    facts = " ".join(f"{name}={value}" for name, value in event_dict.items())
    # A percent sign is safe: the record has no arguments, so logging formats nothing.
    extra = {"leasebook": {"event": event, **event_dict}}
    return (f"{event} {facts}" if facts else event,), {"extra": extra, **kept}


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """A structlog logger on the standard library's logger of that name."""
    logger: structlog.stdlib.BoundLogger = structlog.wrap_logger(
        logging.getLogger(name),
        processors=[structlog.stdlib.filter_by_level, _render],
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    return logger
