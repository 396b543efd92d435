"""Plugins and fixtures for every test."""

from __future__ import annotations

pytest_plugins = ["pytester", "tests.plugins.acceptance", "tests.plugins.database"]
