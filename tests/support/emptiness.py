"""Finds tests that pass because they do nothing."""

from __future__ import annotations

import ast
import inspect
import textwrap


def is_empty(function: object) -> bool:
    """True when the body of a test is only docstrings, `pass`, `return` or `assert True`."""
    # Hypothesis keeps the test that was written inside the one that it runs.
    function = getattr(getattr(function, "hypothesis", None), "inner_test", function)
    if not inspect.isfunction(function):
        return False
    try:
        source = inspect.getsource(inspect.unwrap(function))
    except OSError:
        return False
    tree = ast.parse(textwrap.dedent(source)).body[0]
    if not isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    return all(_does_nothing(statement) for statement in tree.body)


def _does_nothing(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Expr(value=ast.Constant()) | ast.Assert(test=ast.Constant()):
            return True
        case ast.Return(value=None | ast.Constant()):
            return True
        case _:
            return False
