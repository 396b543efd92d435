"""Arguments as JSON documents.

The arguments of a handler are an object with one member for each parameter, defaults filled in, so
that what was accepted is what runs.  An item of a group is the document of its one value.  What
``encode`` accepts, ``decode`` gives back: every value goes through both before it is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from inspect import Signature
from typing import Any, cast

import attrs

from ...domain.errors import InvalidValue
from ...domain.limits import ARGS_BYTES_MAX
from ...domain.values import Json
from ..documents import dumps, loads
from .convert import STRICT, refusal
from .errors import suggestion
from .handlers import Face
from .plain import TOO_LARGE, check, kind

__all__ = [
    "bind",
    "decode",
    "decode_items",
    "document",
    "encode",
    "encode_item",
    "encode_named",
]

ROOT = "args"
ITEM = "item"
#: A JSON value of exactly such a type is the typed value itself.
_AS_IT_IS = frozenset((str, int, float, bool))


def document(face: Face, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Json:
    """The document of a call's arguments: of plain ones directly, of all others the long way.

    Raises InvalidValue as ``bind`` and ``encode`` do.
    """
    if face.direct is not None and not kwargs and (text := face.direct(args)) is not None:
        return text
    return encode(face, bind(face, args, kwargs))


def bind(face: Face, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, object]:
    """The arguments by the names of their parameters, defaults filled in.

    Raises InvalidValue naming the argument that is missing, given twice, or too many.
    """
    names = face.signature.parameters
    for name in kwargs:
        if name not in names:
            raise InvalidValue(
                f"{ROOT}.{name[:60]}", "an unknown argument", suggestion(name, names)
            )
    try:
        bound = face.signature.bind_partial(*args, **kwargs)
    except TypeError as error:
        takes = ", ".join(names) or "no arguments"
        raise InvalidValue(ROOT, f"a call with {error}", f"{face.name} takes {takes}") from None
    bound.apply_defaults()
    for name in names:
        if name not in bound.arguments:
            raise InvalidValue(f"{ROOT}.{name}", "a missing argument", "give it")
    return dict(bound.arguments)


def encode(face: Face, values: Mapping[str, object]) -> Json:
    """The document of bound arguments.  Raises InvalidValue with the path of the bad field."""
    document = {
        name: _to_json(value, face.hints[name], f"{ROOT}.{name}") for name, value in values.items()
    }
    return _checked(ROOT, document, face.hints)


def encode_named(face: Face, values: Mapping[str, object]) -> Json:
    """The document of arguments given by name, as JSON values or as the typed objects."""
    known = face.signature.parameters
    # A misspelt argument is unknown, and another is missing: the first says what was meant.
    for name in values:
        if name not in known:
            raise InvalidValue(
                f"{ROOT}.{name[:60]}", "an unknown argument", suggestion(name, known)
            )
    document = {name: _loosely(face, name, value) for name, value in values.items()}
    for name, parameter in known.items():
        if name not in document:
            if parameter.default is Signature.empty:
                raise InvalidValue(f"{ROOT}.{name}", "a missing argument", "give it")
            document[name] = _to_json(parameter.default, face.hints[name], f"{ROOT}.{name}")
    return _checked(ROOT, document, face.hints)


def encode_item(face: Face, item: object, *, loosely: bool = False) -> Json:
    """The document of one item of a group; ``loosely`` also from JSON values."""
    if not loosely and face.direct is not None and (text := face.direct((item,))) is not None:
        return text
    plain = loosely and _is_json(item)
    document = _to_json(item, None if plain else face.item, ITEM)
    return _checked(ITEM, document, face.item)


def decode(face: Face, args: Json) -> dict[str, object]:
    """The typed arguments of a document.  Raises InvalidValue when they are not what is declared.

    (An older worker may meet arguments that a newer producer wrote.)
    """
    given: Any = loads(args)
    if not isinstance(given, dict):
        raise InvalidValue(ROOT, kind(given), "arguments are an object")
    return _decode(face, cast(dict[str, object], given))


def _decode(face: Face, given: dict[str, object]) -> dict[str, object]:
    if given.keys() != face.hints.keys():
        _check_names(face, given)
    return {name: _typed(each, face.hints[name], f"{ROOT}.{name}") for name, each in given.items()}


def _check_names(face: Face, given: Mapping[str, object]) -> None:
    for name in given:
        if name not in face.hints:
            remedy = suggestion(name, face.hints)
            raise InvalidValue(f"{ROOT}.{name[:60]}", "an unknown argument", remedy)
    for name, parameter in face.signature.parameters.items():
        if name not in given and parameter.default is Signature.empty:
            raise InvalidValue(f"{ROOT}.{name}", "a missing argument", "enqueue it again")


def decode_items(face: Face, items: Iterable[Json]) -> list[object]:
    """The typed items of a group.  Raises InvalidValue as ``decode`` does."""
    return [_typed(loads(each), face.item, f"items[{index}]") for index, each in enumerate(items)]


def _is_json(value: object) -> bool:
    return value is None or isinstance(value, dict | list | tuple | str | int | float)


def _loosely(face: Face, name: str, value: object) -> Any:
    hint = None if _is_json(value) or name not in face.hints else face.hints[name]
    return _to_json(value, hint, f"{ROOT}.{name[:60]}")


def _to_json(value: object, hint: Any, path: str) -> Any:
    if isinstance(hint, type) and _has_fields(hint) and not isinstance(value, hint):
        raise InvalidValue(path, kind(value), f"give a {hint.__name__}")
    try:
        return STRICT.unstructure(value, unstructure_as=hint)
    except Exception as error:
        raise refusal(error, path) from error


def _has_fields(hint: type) -> bool:
    return attrs.has(hint) or hasattr(hint, "__dataclass_fields__")


def _checked(root: str, document: Any, hints: Any) -> Json:
    """Check a document whole, read it back by its types, and write it."""
    check(root, document)
    if root == ITEM:
        _typed(document, hints, ITEM)
    else:
        for name, each in document.items():
            _typed(each, hints[name], f"{ROOT}.{name}")
    text = dumps(document)
    if len(text) > ARGS_BYTES_MAX or len(text.encode()) > ARGS_BYTES_MAX:
        raise InvalidValue(root, f"more than {ARGS_BYTES_MAX:,} bytes", TOO_LARGE)
    return text


def _typed(document: Any, hint: Any, path: str) -> object:
    if type(document) is hint and hint in _AS_IT_IS:
        return document
    try:
        return STRICT.structure(document, hint)
    except Exception as error:
        raise refusal(error, path) from error
