"""Plugins and fixtures for every test."""

from __future__ import annotations

import signal

pytest_plugins = [
    "pytester",
    "tests.plugins.acceptance",
    "tests.plugins.beside",
    "tests.plugins.database",
]

# What is started in the background of a script ignores Ctrl-C, and so would all that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
