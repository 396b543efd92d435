"""The report refuses every way in which a promise may look held and is not."""

from __future__ import annotations

import pytest


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project that promises A01 and has the case C04; C04 holds."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.mkdir("tests")
    pytester.path.joinpath("tests", "acceptance.toml").write_text('ids = ["A01"]\ncases = ["C04"]')
    pytester.makepyfile(
        test_c04="import pytest\n@pytest.mark.case('C04')\ndef test_c04():\n    assert 1 + 1 == 2"
    )
    return pytester


def run(project: pytest.Pytester, source: str, *args: str) -> pytest.RunResult:
    project.makepyfile(test_it="import pytest\n" + source)
    plugins = ("-p", "tests.plugins.acceptance", "-p", "no:cacheprovider")
    return project.runpytest_inprocess(*plugins, "--import-mode=importlib", *args)


def marked(body: str, decorator: str = "") -> str:
    return f"{decorator}\n@pytest.mark.acceptance('A01')\ndef test_a01():\n    {body}\n"


def test_held(project: pytest.Pytester) -> None:
    result = run(project, marked("assert int('1') == 1"), "--acceptance-report")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        ["A01  test_it.py::test_a01  passed", "C04  test_c04.py::test_c04 passed"]
    )
    artifacts = project.path / "artifacts" / "acceptance"
    assert "test_a01" in (artifacts / "report.txt").read_text("utf-8")
    junit = (artifacts / "junit.xml").read_text("utf-8")
    assert '<property name="acceptance" value="A01"' in junit


@pytest.mark.parametrize(
    ("source", "verdict"),
    [
        ("def test_other(): assert int('1')", "no test"),
        (marked("pytest.skip('later')"), "skipped"),
        (marked("assert int('1')", "@pytest.mark.skip"), "skipped"),
        (marked("assert not int('1')", "@pytest.mark.xfail"), "xfailed"),
        (marked("assert int('1')", "@pytest.mark.xfail(strict=False)"), "xpassed"),
        (marked("assert int('2') == 1"), "failed"),
        (marked("pass"), "empty"),
        (marked('"""Nothing yet."""'), "empty"),
        (marked("..."), "empty"),
        (marked("assert True"), "empty"),
        (marked("return"), "empty"),
        (
            "from hypothesis import given, strategies\n@given(strategies.integers())\n"
            "@pytest.mark.acceptance('A01')\ndef test_a01(number):\n    pass\n",
            "empty",
        ),
        (
            "@pytest.fixture\ndef broken():\n    yield\n    raise OSError\n"
            "@pytest.mark.acceptance('A01')\ndef test_a01(broken):\n    assert int('1')\n",
            "failed",
        ),
        (
            "@pytest.mark.acceptance('A01')\n@pytest.mark.parametrize('n', [1, 2])\n"
            "def test_a01(n):\n    assert n == 1 or pytest.skip('later')\n",
            "skipped",
        ),
    ],
)
def test_not_held(project: pytest.Pytester, source: str, verdict: str) -> None:
    result = run(project, source, "--acceptance-report")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"NOT HELD: A01: {verdict}"])


def test_deselected_is_not_held(project: pytest.Pytester) -> None:
    result = run(project, marked("assert int('1')"), "--acceptance-report", "-k", "c04")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["NOT HELD: A01: not run"])


def test_partial_run_without_the_report_passes(project: pytest.Pytester) -> None:
    result = run(project, marked("pass"), "-k", "c04")
    assert result.ret == pytest.ExitCode.OK
    assert not (project.path / "artifacts").exists()


@pytest.mark.parametrize("mark", ["acceptance('A77')", "case('A01')", "acceptance()"])
def test_unknown_id_is_an_error_in_every_run(project: pytest.Pytester, mark: str) -> None:
    source = f"@pytest.mark.{mark}\ndef test_it():\n    assert int('1')\n"
    result = run(project, source)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*test_it.py::test_it: @*"])
