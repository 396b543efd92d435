"""The acceptance report: which promise is held by which test, and whether that test passed.

Tests name promises with `@pytest.mark.acceptance("A03")` and `@pytest.mark.case("C04")`;
`tests/acceptance.toml` lists those that are built. An unlisted id in a mark is always an error.
With `--acceptance-report` the run fails unless every listed id has a test, and all of its tests
ran, do something, and passed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.emptiness import is_empty

KINDS = {"acceptance": "ids", "case": "cases"}
ARTIFACTS = Path("artifacts", "acceptance")
KEY = pytest.StashKey["Report"]()


class Report:
    """Follows the tests of one run; `lines` and `problems` are complete at its end."""

    def __init__(self, listed: dict[str, list[str]]) -> None:
        self.listed = listed
        self.tests: dict[str, list[str]] = {i: [] for ids in listed.values() for i in ids}
        self.empty: set[str] = set()
        self.results: dict[str, str] = {}

    def collect(self, item: pytest.Item) -> None:
        for kind, listed in self.listed.items():
            for mark in item.iter_markers(kind):
                if not mark.args:
                    raise pytest.UsageError(f"{item.nodeid}: @{kind} without an id")
                for name in mark.args:
                    self._collect_one(item, kind, name, listed)

    def _collect_one(self, item: pytest.Item, kind: str, name: str, listed: list[str]) -> None:
        if name not in listed:
            raise pytest.UsageError(
                f"{item.nodeid}: @{kind}({name!r}) is not in tests/acceptance.toml;"
                f" add it to {KINDS[kind]}, or mend the mark"
            )
        if item.nodeid in self.tests[name]:
            return  # Marked on the class or module too.
        self.tests[name].append(item.nodeid)
        item.user_properties.append((kind, name))
        if is_empty(getattr(item, "function", None)):
            self.empty.add(item.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the worst of set-up, call and tear-down."""
        if report.failed:
            self.results[report.nodeid] = "failed"
        elif hasattr(report, "wasxfail"):
            self.results[report.nodeid] = "xfailed" if report.skipped else "xpassed"
        elif report.skipped:
            self.results[report.nodeid] = "skipped"
        elif report.when == "call":
            self.results.setdefault(report.nodeid, "passed")

    def result(self, nodeid: str) -> str:
        result = self.results.get(nodeid, "not run")
        return "empty" if result == "passed" and nodeid in self.empty else result

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """One row for each id and test function; the parameters of a function share a row."""
        for name, nodeids in self.tests.items():
            functions: dict[str, list[str]] = {}
            for nodeid in nodeids:
                functions.setdefault(nodeid.partition("[")[0], []).append(self.result(nodeid))
            for function, results in functions.items():
                count = f" ({len(results)})" if len(results) > 1 else ""
                bad = sorted({result for result in results if result != "passed"})
                yield name, function + count, ", ".join(bad) or "passed"
            if not functions:
                yield name, "-", "no test"

    @property
    def problems(self) -> list[str]:
        return [f"{name}: {result}" for name, _, result in self.rows() if result != "passed"]

    @property
    def lines(self) -> list[str]:
        rows = [("id", "tests", "result"), *self.rows()]
        width = max(len(tests) for _, tests, _ in rows)
        return [f"{name:<4} {tests:<{width}} {result}".rstrip() for name, tests, result in rows]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("acceptance").addoption(
        "--acceptance-report",
        action="store_true",
        help="print which test holds which promise; fail when one is not held",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "acceptance(id, ...): holds these ids of acceptance.toml")
    config.addinivalue_line("markers", "case(id, ...): tries these cases of acceptance.toml")
    listed = tomllib.loads((config.rootpath / "tests" / "acceptance.toml").read_text("utf-8"))
    report = Report({kind: listed.get(key, []) for kind, key in KINDS.items()})
    config.stash[KEY] = report
    config.pluginmanager.register(report, "acceptance-results")
    if config.getoption("acceptance_report") and not config.getoption("xmlpath"):
        config.option.xmlpath = str(config.rootpath / ARTIFACTS / "junit.xml")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Comes before -k and -m, so that a test they leave out counts as not run."""
    for item in items:
        config.stash[KEY].collect(item)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    if not config.getoption("acceptance_report"):
        return
    report = config.stash[KEY]
    folder = config.rootpath / ARTIFACTS
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.txt").write_text("\n".join(report.lines) + "\n", "utf-8")
    green = session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    if report.problems and green:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if not config.getoption("acceptance_report"):
        return
    report = config.stash[KEY]
    terminalreporter.section("acceptance report")
    for line in report.lines:
        terminalreporter.line(line)
    if report.problems:
        terminalreporter.line("")
        terminalreporter.line(f"NOT HELD: {'; '.join(report.problems)}", red=True)
