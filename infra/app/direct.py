"""Arguments of plain types, checked and written in one step.

The long way turns a value into JSON values, checks them, reads them back by their type and writes
them.  For what is plain JSON already all but the writing changes nothing, so here a value of
exactly its plain type is written at once.  Of any other nothing is said: then the long way decides
and finds the words.  Whatever is written here has the same document from both.

| declared type                                   | what is written here             |
|-------------------------------------------------|----------------------------------|
| str, int, float, bool, None, and unions of them | a value of exactly such a type   |
| Any, dict, list                                 | when all within is plain         |
| dict with str keys, list of these types         | when all within is of its type   |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from types import NoneType, UnionType
from typing import Any, TypeAlias, Union, get_args, get_origin

from ...domain.limits import ARGS_BYTES_MAX, INTEGER_MAX
from ...domain.values import Json
from ..documents import dumps

#: The JSON text of a value, None when the long way must look at it.
Writer: TypeAlias = Callable[[Any], Json | None]
#: The same of all arguments in their order.
Direct: TypeAlias = Callable[[tuple[object, ...]], Json | None]

#: A character has four bytes at most, so that a document of so many is surely not too large.
CHARS_MAX = ARGS_BYTES_MAX // 4
#: Well below what the long way refuses.
DEPTH_MAX = 40


def direct(signature: Signature, hints: Mapping[str, Any]) -> Direct | None:
    """How the arguments of a handler are written when all are given by place; None for never."""
    places: list[tuple[str, Writer]] = []
    for name, parameter in signature.parameters.items():
        writer = writer_of(hints[name])
        if writer is None or parameter.kind is Parameter.KEYWORD_ONLY:
            return None
        places.append((f"{dumps(name)}:", writer))

    if len(places) == 1:
        return _only(*places[0])

    def write(args: tuple[object, ...]) -> Json | None:
        if len(args) != len(places):
            return None
        members: list[str] = []
        for (name, writer), value in zip(places, args, strict=True):
            text = writer(value)
            if text is None:
                return None
            members.append(name + text)
        document = "{" + ",".join(members) + "}"
        return document if len(document) < CHARS_MAX else None

    return write


def _only(name: str, writer: Writer) -> Direct:
    """The same of the only argument, which most handlers have."""

    def write(args: tuple[object, ...]) -> Json | None:
        text = writer(args[0]) if len(args) == 1 else None
        return None if text is None or len(text) >= CHARS_MAX else f"{{{name}{text}}}"

    return write


def direct_item(hint: Any) -> Direct | None:
    """How an item of this declared type is written, the only argument; None for never."""
    writer = writer_of(hint)
    if writer is None:
        return None

    def write(args: tuple[object, ...]) -> Json | None:
        text = writer(args[0])
        return text if text is not None and len(text) < CHARS_MAX else None

    return write


def writer_of(hint: Any, depth: int = 0) -> Writer | None:
    """How a value of this declared type is written, None for a type that is not plain."""
    if hint is Any:
        return _anything
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if all(each in _SCALARS for each in members):
        return _one_of({each: _SCALARS[each] for each in members})
    if hint is dict or hint is list:
        return _one_of({hint: _anything})
    return _inside(get_origin(hint), get_args(hint), depth + 1)


def _inside(container: Any, args: tuple[Any, ...], depth: int) -> Writer | None:
    """The writer of a dict or a list of a declared type."""
    if container not in (dict, list) or depth > DEPTH_MAX:
        return None
    inner = writer_of(args[-1], depth)
    if inner is None or (container is dict and args[0] is not str):
        return None
    write = _object if container is dict else _array
    return _one_of({container: lambda value: write(value, inner)})


def _one_of(writers: dict[type, Writer]) -> Writer:
    """By the exact type: a subclass may mean something else, as an Enum and a bool do."""
    if len(writers) == 1:
        ((kind, only),) = writers.items()
        return lambda value: only(value) if type(value) is kind else None

    def write(value: object) -> Json | None:
        writer = writers.get(type(value))
        return None if writer is None else writer(value)

    return write


def _anything(value: Any, depth: int = 0) -> Json | None:
    if depth > DEPTH_MAX:
        return None
    if type(value) in (dict, list):
        write = _object if type(value) is dict else _array
        return write(value, lambda each: _anything(each, depth + 1))
    writer = _SCALARS.get(type(value))
    return None if writer is None else writer(value)


def _object(value: Any, inner: Writer) -> Json | None:
    members: list[str] = []
    for key, each in value.items():
        name = _text(key) if type(key) is str else None
        text = inner(each)
        if name is None or text is None:
            return None
        members.append(f"{name}:{text}")
    return "{" + ",".join(members) + "}"


def _array(value: Any, inner: Writer) -> Json | None:
    texts: list[str] = []
    for each in value:
        text = inner(each)
        if text is None:
            return None
        texts.append(text)
    return "[" + ",".join(texts) + "]"


def _text(value: str) -> Json | None:
    if "\0" in value:
        return None
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            return None
    return dumps(value)


def _integer(value: int) -> Json | None:
    return repr(value) if -INTEGER_MAX <= value <= INTEGER_MAX else None


def _float(value: float) -> Json | None:
    return repr(value) if math.isfinite(value) else None


_SCALARS: dict[Any, Writer] = {
    str: _text,
    int: _integer,
    float: _float,
    bool: dumps,
    NoneType: dumps,
}
