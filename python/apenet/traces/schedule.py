"""Operations of ranks as a GOAL trace: what starts after what."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO


class RankOperations:
    """The operations of one rank, in the order in which they may start."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self.count = 0

    def add(self, operation: str, cpu: int = 0, ended: Iterable[int] = (), begun: Iterable[int] = ()) -> int:
        """An operation that starts when those of `ended` have ended and those of `begun` have started.

        Returns its number.
        """
        self.count += 1
        number = self.count
        on = f" cpu {cpu}" if cpu else ""
        self._lines.append(f"l{number}: {operation}{on}")
        self._lines.extend(f"l{number} requires l{before}" for before in dict.fromkeys(ended))
        self._lines.extend(f"l{number} irequires l{before}" for before in dict.fromkeys(begun))
        return number

    def write(self, rank: int, file: TextIO) -> None:
        """Writes the rank's part of a trace."""
        file.write("\n".join([f"rank {rank} {{", *self._lines, "}\n"]))


class Chain:
    """A thread of a rank: each operation starts after the one before has started, or ended if that was awaited."""

    def __init__(self, rank: RankOperations, cpu: int = 0) -> None:
        self.rank = rank
        self.cpu = cpu
        self._ended: list[int] = []
        self._begun: list[int] = []

    def begin(self, operation: str) -> int:
        """Starts an operation, which goes on beside the next ones. Returns its number."""
        number = self.rank.add(operation, self.cpu, self._ended, self._begun)
        self._ended, self._begun = [], [number]
        return number

    def await_end(self, numbers: Iterable[int]) -> None:
        """The next operation starts when these have ended, too."""
        self._ended.extend(numbers)

    def compute(self, duration_ns: int) -> None:
        """Computes for this time."""
        if duration_ns > 0:
            self.await_end([self.begin(f"calc {duration_ns}")])

    def fork(self) -> Chain:
        """A chain that goes on beside this one, from here."""
        beside = Chain(self.rank, self.cpu)
        beside._ended, beside._begun = list(self._ended), list(self._begun)
        return beside

    def pending(self) -> list[int]:
        """The operations whose ends the next one awaits."""
        return list(self._ended)


def message(peer: int, size_bytes: int, tag: int, *, is_send: bool) -> str:
    """The operation that sends a message to a rank, or receives one from it."""
    return f"{'send' if is_send else 'recv'} {size_bytes}b {'to' if is_send else 'from'} {peer} tag {tag}"


def write_trace(ranks: Iterable[RankOperations], count: int, file: TextIO) -> None:
    """Writes the GOAL trace of so many ranks."""
    file.write(f"num_ranks {count}\n")
    for rank, operations in enumerate(ranks):
        operations.write(rank, file)
