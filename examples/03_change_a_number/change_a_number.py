"""Changes one number of a machine and shows a ping-pong before and after.

Two ways: a setting, as `--set` gives it on the command line, and an edited copy of the machine's file.
"""

import re
import tempfile
from pathlib import Path

import apenet

SIZES = (16, 256, 4096, 65536, 1048576)


def edited_copy(machine: apenet.Machine, folder: Path, key: str, value: int) -> apenet.Machine:
    """A machine read from an edited copy of its file, in which `key` has another value."""
    text, count = re.subn(
        rf"^{key} = .*$",
        f'{key} = {{ value = {value}, class = "assumed", source = "what if?" }}',
        machine.to_toml(),
        flags=re.MULTILINE,
    )
    assert count == 1, f"{key} stands {count} times in the file"
    path = folder / "what-if.toml"
    path.write_text(text, encoding="utf-8")
    return apenet.machine(str(path))


def main() -> None:
    before = apenet.machine("apenet-2004")
    faster_link = apenet.machine("apenet-2004", ["network.link.clock_mhz=133"])
    with tempfile.TemporaryDirectory() as folder:
        slower_reads = edited_copy(before, Path(folder), "read_latency_ns", 1350)

        machines = {
            "apenet-2004": before,
            "link at 133 MHz": faster_link,
            "bus reads 1 us later": slower_reads,
        }
        results = {name: apenet.bench.pingpong(machine, sizes=SIZES) for name, machine in machines.items()}

    print(f"{'size':>9}" + "".join(f"{name:>26}" for name in results))
    for i, size in enumerate(SIZES):
        cells = [f"{r.times_us[i]:10.2f} us {r.bandwidths_mib_s[i]:6.1f} MiB/s" for r in results.values()]
        print(f"{size:9d}" + "".join(f"{cell:>26}" for cell in cells))


if __name__ == "__main__":
    main()
