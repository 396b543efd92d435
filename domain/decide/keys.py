"""What becomes of an enqueue whose unique key another job has."""

from __future__ import annotations

from ..commands import Enqueue, Reschedule
from ..errors import UniqueKeyTaken
from ..job import Job
from ..log import Change
from ..values import OnConflict
from . import change
from .moving import MOVABLE


def meet(holder: Job, wanted: Enqueue, on_conflict: OnConflict, same_args: bool) -> Change | None:
    """How ``holder``, which has the key, changes in place of the job that is ``wanted``.

    None: it stays as it is and stands for both.  Whether the arguments are the same is a fact that
    comes from outside, because the domain does not look into documents.  Raises UniqueKeyTaken
    when the wanted job must not come to be and the holder cannot stand for it, InvalidValue when
    the holder would expire before its new start.
    """
    if holder.spec.name != wanted.spec.name:
        raise _taken(holder, "it is another kind of job; give each kind keys of its own")
    match on_conflict:
        case OnConflict.KEEP:
            return None
        case OnConflict.REJECT:
            raise _taken(holder, 'wait until it ends, or say on_conflict="keep"')
        case OnConflict.REPLACE:
            pass
    if holder.held or holder.state not in MOVABLE:
        raise _taken(holder, "only a job that waits can be moved; try again when it has ended")
    if not same_args:
        raise _taken(holder, "it has other arguments, which never change; let it run first")
    moved = change(holder, Reschedule(wanted.at, wanted.run_at or wanted.at))
    return moved if moved.events else None


def _taken(holder: Job, remedy: str) -> UniqueKeyTaken:
    if holder.held:
        remedy = "it is held for an operator and keeps its key until it is discarded"
    spec = holder.spec
    return UniqueKeyTaken(
        spec.queue, spec.unique_key or "", holder.id, holder.state, holder.held, remedy
    )
