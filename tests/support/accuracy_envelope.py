"""Measures how far the packet engine's latencies are from the flit engine's beyond its accuracy envelope.

    .venv/bin/python tests/support/accuracy_envelope.py --draws 3000

runs drawn configurations with both engines, and writes the measured columns of the table, of which the packet engine's
warning is made. Virtual times repeat exactly, so an equal number of draws gives equal bytes.
"""

import argparse
import csv
import multiprocessing
import random
import re
import statistics
from dataclasses import dataclass, replace
from pathlib import Path

import apenet

TABLE = Path(__file__).resolve().parents[2] / "src/network/packet/accuracy_envelope.csv"
MEASURED = ("configurations", "lowest_percent", "median_percent", "highest_percent")
BEYOND = "packet engine: "
SHORT = {"warmup_cycles": 3000, "measure_cycles": 5000, "drain_cycles": 20000}
PAPERS = ["ape128", "qpace", "quong", "extoll-64", "extoll-64-2d", "pax", "torus-slice", "my-cluster"]
CUBES = ["[8]", "[2]", "[4,4]", "[4,4,4]", "[8,4]", "[4,2,2]", "[5,3]"]
MOST_OF_SATURATION = 0.9
PACKET_FLITS = (1, 2, 4, 8, 17, 32)


@dataclass(frozen=True)
class Case:
    machine: str
    packet_flits: int
    load: float
    pattern: str = "uniform"
    settings: tuple[str, ...] = ()

    def run(self, engine, seed=1, **cycles):
        """The point of this load, and the warning of the packet engine that it is beyond its accuracy, or None."""
        result = apenet.traffic(
            self.machine,
            loads=(self.load,),
            pattern=self.pattern,
            packet_flits=self.packet_flits,
            settings=self.settings,
            engine=engine,
            seed=seed,
            **cycles,
        )
        return result.points[0], next((warning for warning in result.warnings if BEYOND in warning), None)


def drawn(seed, packet_flits=PACKET_FLITS):
    """A configuration: machine, shape, buffers, packets, pattern and load."""
    draws = random.Random(seed)
    machine = draws.choice([*PAPERS, *4 * ["iq-router-v1", "iq-router-v2"]])
    settings = []
    if machine not in ("pax", "my-cluster"):
        settings.append(f"network.dims={draws.choice(CUBES)}")
    elif draws.random() < 0.5:
        settings.append("network.routing=random-up")
    flits = draws.choice(packet_flits)
    if machine.startswith("iq"):
        buffer_flits = draws.choice([1, 2, 4, 8, 16, 32])
        settings.append(f"router.buffer_flits={buffer_flits}")
        settings.append(f"router.virtual_channels={draws.choice([2, 3, 4, 5, 8])}")
        settings.append(f"router.channel_selection={draws.choice(['any', 'lane'])}")
        settings.append(f"network.link.latency_ns={draws.choice([1, 1, 1, 4])}")
        if buffer_flits >= flits:
            settings.append(f"router.switching={draws.choice(['wormhole', 'virtual-cut-through'])}")
    pattern = draws.choice(["uniform", "uniform", "neighbor", "randperm"])
    return Case(machine, flits, round(draws.uniform(0.05, 0.7), 3), pattern, tuple(settings))


# A single hot virtual channel, in which the packet engine is too slow: seldom drawn.
HOT_CHANNEL = Case("ape128", 17, 0.52, "randperm", ("network.dims=[4,4,4]",))


def measured(seed):
    """The class of a drawn configuration and the error in percent. HOT_CHANNEL has seed 1.

    None within the limits, above 90 % of the load that saturates an engine, and where the flit engine is no reference.
    """
    case = drawn(seed, (*PACKET_FLITS, 64, 128)) if seed != 1 else HOT_CHANNEL
    packet, warning = case.run("packet", seed, **SHORT)
    found = warning and re.search(rf"{BEYOND}latencies may be off .* \((.*?)\); check with --engine flit", warning)
    if not found:
        return None
    flit, _ = case.run("flit", seed, **SHORT)
    more, _ = replace(case, load=case.load / MOST_OF_SATURATION).run("flit", seed, **SHORT)
    if packet.saturated or flit.saturated or more.saturated:
        return None
    return found[1], 100 * (packet.packet_latency_cycles / flit.packet_latency_cycles - 1)


def table_of(text):
    """The rows of the table by class, with their numbers."""
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return {row["class"]: {key: float(value) for key, value in row.items() if key != "class"} for row in rows}


def text_of(text, errors):
    """The text of the table with the measured columns of these errors, by class. Every class must have some."""
    lines = [line for line in text.splitlines() if line.startswith("#")]
    rows = table_of(text)
    lines.append(",".join(["class", *next(iter(rows.values()))]))
    if missing := [name for name in rows if name not in errors]:
        raise ValueError(f"{TABLE.name}: no drawn configuration of {', '.join(missing)}: expected more draws")
    for name, row in rows.items():
        own = errors[name]
        row.update(zip(MEASURED, (len(own), min(own), statistics.median(own), max(own)), strict=True))
        limits = [f"{value:g}" for key, value in row.items() if key not in MEASURED]
        lines.append(",".join([name, *limits, *(f"{round(row[key])}" for key in MEASURED)]))
    return "".join(f"{line}\n" for line in lines)


def main():
    """Measures, and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=3000)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    errors = {}
    with multiprocessing.Pool(options.jobs) as pool:
        for found in pool.imap(measured, [1, *range(10_000, 10_000 + options.draws)]):
            if found is not None:
                errors.setdefault(found[0], []).append(found[1])
    TABLE.write_text(text_of(TABLE.read_text(), errors))


if __name__ == "__main__":
    main()
