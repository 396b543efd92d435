"""``frozen``: the values of this package, which nobody changes once they are made.

Type checkers hold everybody to that.  At run time nothing does: attrs' own ``frozen`` sets each
field by a call, which makes a job three times as dear, and making jobs, events and commands is a
third of what a busy worker does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["frozen"]

if TYPE_CHECKING:
    from attrs import frozen
else:
    from functools import partial

    from attrs import define

    frozen = partial(define, unsafe_hash=True)
