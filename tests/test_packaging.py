"""What pyproject.toml lists and src/ links is what the repository holds."""

from __future__ import annotations

import tomllib

from tests.support.source import PARTS, TOP

SETUPTOOLS = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]


def test_every_package_is_shipped() -> None:
    found = {
        ".".join(("leasebook", *init.parent.relative_to(TOP).parts))
        for part in PARTS
        for init in (TOP / part).rglob("__init__.py")
    }
    assert set(SETUPTOOLS["packages"]) == {"leasebook", *found}


def test_every_module_is_in_a_package() -> None:
    bare = [
        str(path)
        for part in PARTS
        for path in (TOP / part).rglob("*.py")
        if not (path.parent / "__init__.py").exists()
    ]
    assert bare == []


def test_every_data_file_is_shipped() -> None:
    found = {
        path
        for part in PARTS
        for path in (TOP / part).rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc", ".md")
    }
    shipped = {
        path
        for package, patterns in SETUPTOOLS["package-data"].items()
        for pattern in patterns
        for path in TOP.joinpath(*package.split(".")[1:]).glob(pattern)
    }
    assert found - shipped == set()


def test_every_part_is_linked_for_the_type_checkers() -> None:
    view = TOP / "src" / "leasebook"
    links = {path.name for path in view.iterdir() if path.is_symlink()}
    assert links == {*PARTS, "__init__.py", "py.typed"}
    for name in links:
        assert (view / name).samefile(TOP / name), name
