"""Which faults a world has, and how often each has fired.

Every world draws its own few kinds: where all faults happen at once, most histories end before
they become interesting, and two faults that hide each other are never seen apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from random import Random

#: At a step of somebody's transaction.
STEP_FAULTS = (
    "answer lost",
    "commit in flight",
    "cut before commit",
    "cut at statement",
    "slow statement",
    "process killed at step",
)
#: Any time.
WORLD_FAULTS = (
    "worker killed",
    "worker and heart killed",
    "heart killed",
    "worker frozen",
    "heart frozen",
    "all frozen",
    "worker clock jumped",
    "database clock jumped",
    "outage",
    "worker stopped",
)
HANDLER_FAULTS = (
    "handler failed",
    "handler rejected",
    "handler snoozed",
    "handler rate limited",
    "handler asked for a retry",
    "handler slow past its lease",
    "handler past its time-out",
    "handler stubborn",
    "handler blocked the loop",
    "handler killed its worker",
    "handler result refused by the store",
    "no thread left",
)
EFFECT_FAULTS = (
    "effect refused",
    "effect answer lost",
    "effect left without a word",
)
PRODUCER_FAULTS = (
    "transaction long",
    "transaction rolled back",
    "producer crashed",
    "inbox refused by the store",
    "wake-up lost",
    "wake-up doubled",
)
FAULTS = (*STEP_FAULTS, *WORLD_FAULTS, *HANDLER_FAULTS, *EFFECT_FAULTS, *PRODUCER_FAULTS)

RATES = {"process killed at step": (0.004, 0.02), "slow statement": (0.02, 0.1)}
STEP_RATES = (0.01, 0.03, 0.08)
OTHER_RATES = (0.1, 0.3, 0.6)


class Profile:
    """The faults of one world.  ``fired`` counts them; ``calm`` ends them.

    ``focus`` are faults that it has in any case, and often.
    """

    def __init__(self, chance: Random, focus: Collection[str] = ()) -> None:
        self._chance = chance
        self.fired: Counter[str] = Counter()
        self.rates: dict[str, float] = {}
        share = chance.choice((0.0, 0.1, 0.25, 0.25, 0.5))
        for fault in FAULTS:
            if chance.random() < share:
                usual = STEP_RATES if fault in STEP_FAULTS else OTHER_RATES
                self.rates[fault] = chance.choice(RATES.get(fault, usual))
        for fault in focus:
            self.rates[fault] = (STEP_RATES if fault in STEP_FAULTS else OTHER_RATES)[-1]
        self.world_faults = [fault for fault in WORLD_FAULTS if fault in self.rates]
        self.handler_faults = [fault for fault in HANDLER_FAULTS if fault in self.rates]
        self.step_faults = any(fault in self.rates for fault in STEP_FAULTS)

    def calm(self) -> None:
        """No more faults from now on."""
        self.rates.clear()
        self.world_faults.clear()
        self.handler_faults.clear()
        self.step_faults = False

    def strikes(self, fault: str) -> bool:
        """Whether this fault happens here; counted when it does."""
        rate = self.rates.get(fault)
        if rate is None or self._chance.random() >= rate:
            return False
        self.fired[fault] += 1
        return True
