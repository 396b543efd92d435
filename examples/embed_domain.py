"""The pure domain inside somebody's application: no database, no worker, only attrs.

Run it with ``python -m leasebook.examples.embed_domain``.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from leasebook.domain import JobSpec, Policy, StaleLease, State, change, fold
from leasebook.domain.commands import Complete, Enqueue, ExpireLease, TakeLease
from leasebook.domain.values import ExpiryCause


def main() -> None:
    """A worker freezes, another takes over, and the first one's late answer is refused."""
    noon = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
    spec = JobSpec(UUID(int=1), "send_invoice", '{"number":7}', noon, policy=Policy(lease=60))

    log = [change(None, Enqueue(noon, spec))]
    log.append(change(log[-1].after, TakeLease(noon, worker="ada")))
    frozen = log[-1].after
    assert frozen.lease is not None

    later = noon + timedelta(minutes=2)
    log.append(change(frozen, ExpireLease(later, frozen.lease.token, ExpiryCause.LEASE_ENDED)))
    log.append(change(log[-1].after, TakeLease(later, worker="grace")))
    current = log[-1].after
    assert current.lease is not None

    try:
        change(current, Complete(later, token=frozen.lease.token))
    except StaleLease as refusal:
        print(refusal)

    log.append(change(current, Complete(later, token=current.lease.token)))
    job = fold(event for each in log for event in each.events)
    assert job is not None
    assert job.state is State.DONE
    print(f"{job.state} after {job.starts} starts, {job.attempts} attempt spent")


if __name__ == "__main__":
    main()
