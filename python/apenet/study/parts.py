"""What a machine is made of and what its parts cost, so that a search can keep to a budget."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from apenet.base.errors import InputError
from apenet.machine import Machine
from apenet.machine.schema import OVERRIDES

PARTS = ("node", "router", "cable", "cable_gbit_s")
"""What has a price. A cable joins two routers; `cable_gbit_s` is their rate in one direction, all cables together."""

PRICE = "price"
BOUNDS = (*PARTS, PRICE)
"""What can be limited."""

PRICE_OPTION, LIMIT_OPTION = "--price", "--limit"


@dataclass(frozen=True)
class Budget:
    """Prices of parts, of one machine or of all, and the most that a setting may have of a part, or may cost."""

    prices: Mapping[tuple[str, str], float]
    """By machine and part; machine "" is every machine that has no price of its own for the part."""
    limits: Mapping[str, float]

    @classmethod
    def of(cls, prices: Mapping[str, float], limits: Mapping[str, float]) -> Budget:
        """Prices by `PART` or `MACHINE:PART`."""
        by_part = {}
        for key, amount in prices.items():
            machine, _, part = key.rpartition(":")
            by_part[machine, part] = amount
        return cls(by_part, limits)

    def check(self, machines: tuple[str, ...]) -> None:
        """Raises InputError for a part that there is not, a machine that is not in the search, or a wrong number."""
        for (machine, part), amount in self.prices.items():
            name = f"{machine}:{part}" if machine else part
            if part not in PARTS:
                raise InputError(PRICE_OPTION, name, f"a price of one of {', '.join(PARTS)}")
            if machine and machine not in machines:
                raise InputError(PRICE_OPTION, name, f"a price for one of the machines {', '.join(machines)}")
            _check_amount(PRICE_OPTION, name, amount)
        for name, most in self.limits.items():
            if name not in BOUNDS:
                raise InputError(LIMIT_OPTION, name, f"a limit of one of {', '.join(BOUNDS)}")
            _check_amount(LIMIT_OPTION, name, most)
        if PRICE in self.limits and not self.prices:
            raise InputError(LIMIT_OPTION, PRICE, f"{PRICE_OPTION} of at least one part beside it")

    @property
    def is_needed(self) -> bool:
        """Whether anything depends on the parts of a machine."""
        return bool(self.prices or self.limits)

    def amounts(self, name: str, machine: Machine) -> dict[str, float]:
        """The parts of a machine that the budget names, and its price if there are prices. Raises InputError."""
        named = {part for _, part in self.prices} | (self.limits.keys() - {PRICE})
        parts = _parts(machine, [part for part in PARTS if part in named])
        if not self.prices:
            return parts
        of_parts = {part: self.prices.get((name, part), self.prices.get(("", part), 0.0)) for part in parts}
        return {**parts, PRICE: math.fsum(parts[part] * each for part, each in of_parts.items())}

    def excess(self, amounts: Mapping[str, float]) -> float:
        """By which share the limits are exceeded, all together; 0 within them."""
        return math.fsum(max(0.0, amounts[name] / most - 1) for name, most in self.limits.items())


def _check_amount(option: str, name: str, amount: float) -> None:
    if not (math.isfinite(amount) and (amount > 0 or (option == PRICE_OPTION and amount == 0))):
        raise InputError(option, f"{name}={amount:g}", "a number above zero")


def _parts(machine: Machine, names: list[str]) -> dict[str, float]:
    if len(machine.rails) > 1:
        raise InputError("machine", machine.label, "one card in a node: the parts of several networks are not counted")
    traits = machine.arrangement()
    if traits is None:
        raise InputError("machine", machine.label, f"a network of routers and cables, to count {', '.join(names)}")
    found = {"node": float(traits.nodes), "router": float(traits.routers), "cable": float(traits.cables)}
    if "cable_gbit_s" in names:
        found["cable_gbit_s"] = traits.cables * _link_gbit_s(machine)
    return {name: found[name] for name in names}


def _link_gbit_s(machine: Machine) -> float:
    """The rate of a cable in one direction."""
    network = machine.file.network
    link = network.link
    differing = [name for name in OVERRIDES if getattr(link, name, None) is not None]
    if link is None or differing or network.links:
        key = f"network.link.{differing[0]}" if differing else "network.links"
        raise InputError(key, "a table", "cables of one kind, to price them by cable_gbit_s")
    return float(link.clock_mhz.value * link.word_bytes.value * 8 / link.word_cycles.value / 1000)
