"""Events as lines of JSON: what comes back is what was written."""

from __future__ import annotations

from itertools import chain

from leasebook.domain.log import Recorded
from leasebook.infra.bundle.lines import audit_line, audit_of, event_line, events_of, is_of
from tests.codec.samples import JOB, SAMPLES
from tests.support.facts import refused, started


def test_every_event_comes_back() -> None:
    log = [
        Recorded(JOB, version, version + 100, 2**40 + version, event)
        for version, event in enumerate(chain(*SAMPLES.values()), 1)
    ]
    lines = [event_line(each) for each in log]
    assert all("\n" not in line and is_of(JOB, line) for line in lines)
    assert list(events_of(lines)) == log


def test_every_audit_line_comes_back() -> None:
    for line in (started(1), refused(2, 1, 2)):
        assert audit_of(audit_line(line)) == line
