"""Lines of this package and lines of handlers are alike, whatever writes them."""

from __future__ import annotations

import logging

import pytest

from leasebook.infra.app.logs import Logger, handler_logger

log = Logger("leasebook.handler")


def written(record: logging.LogRecord) -> tuple[object, ...]:
    facts = vars(record)["leasebook"]
    return record.name, record.levelno, record.getMessage(), list(facts.items()), record.exc_info


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error", "critical"])
def test_a_line_is_the_same_through_structlog(level: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(level.upper(), "leasebook.handler")
    error = ValueError("no such page")
    for logger in (log, handler_logger()):
        getattr(logger, level)("100% synced", page="a b", size=None, exc_info=error)
    ours, theirs = map(written, caplog.records)
    assert ours == theirs
    assert ours[2] == "100% synced page=a b size=None"
    assert ours[3] == [("event", "100% synced"), ("page", "a b"), ("size", None)]
    assert ours[4] == (ValueError, error, None)


def test_a_line_below_the_level_is_not_written(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING", "leasebook.handler")
    log.info("synced")
    assert not log.is_enabled_for(logging.INFO)
    log.warning("synced late")
    assert [record.getMessage() for record in caplog.records] == ["synced late"]


def test_a_line_tells_where_it_was_written(caplog: pytest.LogCaptureFixture) -> None:
    Logger("leasebook.test").error("odd")
    assert caplog.records[-1].funcName == "test_a_line_tells_where_it_was_written"
