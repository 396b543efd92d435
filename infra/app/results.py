"""What handlers give back, results and receipts, as JSON documents: mended rather than refused."""

from __future__ import annotations

from ...domain.limits import RECEIPT_BYTES_MAX, RESULT_BYTES_MAX
from ...domain.values import Json
from ..documents import dumps
from .convert import LENIENT
from .errors import ResultRefused
from .plain import TOO_LARGE, escaped, kind


def encode_result(value: object) -> Json:
    r"""The document of what a handler returned.  Raises ResultRefused.

    NUL and lone surrogates are kept as the six characters ``\u0000`` and ``\ud800``, integers
    beyond 2^53 as text, so that no job is stranded by them.  Refused are NaN and infinities,
    objects without a JSON form, and more than ``RESULT_BYTES_MAX`` bytes.
    """
    return _lenient("result", value, RESULT_BYTES_MAX)


def encode_receipt(value: object) -> Json:
    """The document of a receipt, as of a result, up to ``RECEIPT_BYTES_MAX`` bytes."""
    return _lenient("receipt", value, RECEIPT_BYTES_MAX)


def _lenient(field: str, value: object, most: int) -> Json:
    if value is None:
        return "null"
    try:
        text = dumps(escaped(LENIENT.unstructure(value)))
    except ResultRefused:
        raise
    except Exception as error:
        # A result is anybody's object: its attributes, its repr and its size may all misbehave.
        raise ResultRefused(
            field, f"{kind(value)} ({type(error).__name__})", "give what JSON can hold"
        ) from error
    if len(text) > most or len(text.encode()) > most:
        raise ResultRefused(field, f"more than {most:,} bytes", TOO_LARGE)
    return text
