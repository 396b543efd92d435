"""Another policy, as it is written: ``sync_page.group.window=10``, ``sync_page.retry=5``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import Factory, define
from attrs import evolve as replace

from ...domain.errors import InvalidValue
from ...domain.job import Group, JobSpec
from ...domain.limits import check_count
from ...domain.retry import RETRIES_MAX, Retry

SLOTS_MAX = 100_000
GROUP_FIELDS = ("window", "max_hold", "max_size")
#: What may be set of a name, and what it is.
SETTINGS = {
    "NAME.group.window": "seconds after the newest item",
    "NAME.group.max_hold": "seconds after the first item",
    "NAME.group.max_size": "items of a group",
    "NAME.retry": "retries",
    "NAME.retry.delay": "seconds between attempts",
    "NAME.retry.delays": "seconds between attempts, one by one: 1,10,60",
    "NAME.concurrency": "runs of this name at once",
    "queue.NAME.concurrency": "runs of this queue at once",
    "concurrency": "slots of every worker",
}


@define
class Policy:
    """What is to be otherwise than it was; what is not in it stays as recorded."""

    slots: int | None = None
    groups: dict[str, dict[str, float]] = Factory(dict[str, dict[str, float]])
    retries: dict[str, int] = Factory(dict[str, int])
    delays: dict[str, Retry] = Factory(dict[str, Retry])
    of_name: dict[str, int] = Factory(dict[str, int])
    of_queue: dict[str, int] = Factory(dict[str, int])

    @property
    def names(self) -> set[str]:
        """The job names that it is about."""
        return {*self.groups, *self.retries, *self.delays, *self.of_name}

    @property
    def queues(self) -> set[str]:
        """The queues that it is about."""
        return set(self.of_queue)

    def spec(self, spec: JobSpec) -> JobSpec:
        """What a job would have been born as."""
        retries = self.retries.get(spec.name)
        if retries is not None:
            spec = replace(spec, policy=replace(spec.policy, retries=retries))
        fields = self.groups.get(spec.name)
        if fields and spec.group is not None:
            spec = replace(spec, group=_group(spec.group, fields))
        return spec


def _group(group: Group, fields: Mapping[str, float]) -> Group:
    return Group(
        fields.get("window", group.window),
        fields.get("max_hold", group.max_hold),
        int(fields.get("max_size", group.max_size)),
        group.serial,
    )


def parse(settings: Iterable[str]) -> Policy:
    """The policy that ``settings`` ask for, each of the form ``what=value``.

    Raises InvalidValue for one that cannot be read.
    """
    policy = Policy()
    for setting in settings:
        what, sign, value = setting.partition("=")
        if not sign or not _set(policy, what.strip(), value.strip()):
            remedy = "write one of " + ", ".join(f"{each}=…" for each in SETTINGS)
            raise InvalidValue("--set", repr(setting)[:80], remedy)
    return policy


def _set(policy: Policy, what: str, value: str) -> bool:
    """Take one setting over; whether it was understood."""
    if what == "concurrency":
        policy.slots = _count(what, value, 1, SLOTS_MAX)
        return True
    name, _, last = what.rpartition(".")
    if last == "concurrency" and name.startswith("queue."):
        policy.of_queue[name.removeprefix("queue.")] = _count(what, value, 0, SLOTS_MAX)
    elif last == "concurrency":
        policy.of_name[name] = _count(what, value, 0, SLOTS_MAX)
    elif last == "retry":
        policy.retries[name] = _count(what, value, 0, RETRIES_MAX)
    elif last == "delay" and name.endswith(".retry"):
        policy.delays[name.removesuffix(".retry")] = Retry(delay=_seconds(what, value))
    elif last == "delays" and name.endswith(".retry"):
        delays = tuple(_seconds(what, each) for each in value.split(","))
        policy.delays[name.removesuffix(".retry")] = Retry(delays=delays)
    elif last in GROUP_FIELDS and name.endswith(".group"):
        number = _count(what, value, 1, 1_000) if last == "max_size" else _seconds(what, value)
        policy.groups.setdefault(name.removesuffix(".group"), {})[last] = number
    else:
        return False
    return bool(name)


def _count(what: str, value: str, least: int, most: int) -> int:
    try:
        return check_count(what, int(value), least=least, most=most)
    except ValueError:
        remedy = f"give a number from {least:,} to {most:,}"
        raise InvalidValue(what, repr(value)[:40], remedy) from None


def _seconds(what: str, value: str) -> float:
    try:
        return Retry(delay=float(value)).delay
    except ValueError:
        raise InvalidValue(what, repr(value)[:40], "give a number of seconds") from None
