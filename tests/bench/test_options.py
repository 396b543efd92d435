"""What nobody can measure is refused before anything is, in words."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import bench.__main__ as program


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("drain --rounds 0", "'0' is no whole number from 1"),
        ("drain --rounds -1", "'-1' is no whole number from 1"),
        ("drain --jobs 0", "'0' is no whole number from 1"),
        ("snapshot --minutes 0", "'0' is no time"),
        ("snapshot --minutes ten", "'ten' is no time"),
        ("drain --queues leasebook:x", "'x' in 'leasebook:x' is no batch"),
        ("drain --queues leasebook:0", "'0' in 'leasebook:0' is no batch"),
        ("drain --queues lease", "'lease' is no queue"),
        ("drain --queues leasebook@/nowhere", "'/nowhere' is no checkout"),
        ("drian", "there is no measure 'drian'"),
    ],
)
def test_what_is_refused(
    arguments: str, text: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", *arguments.split()])
    with pytest.raises(SystemExit) as refused:
        program.main()
    assert refused.value.code == 2
    assert text in capsys.readouterr().err


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "drain", "--dsn", "postgresql://127.0.0.1:1/x"])
    with pytest.raises(SystemExit, match=r"make bench: no server answers: .*refused"):
        program.main()
