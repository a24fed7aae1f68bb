"""Traffic between ranks: from a recorded trace, or from a matrix in a text file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from apenet.base.errors import InputError
from apenet.base.infiles import UnreadableError, read_text
from apenet.run.replay import read_trace

Integers = npt.NDArray[np.int64]
MOST_FILE_BYTES = 2**28
_MOST_BYTES = 2**62


@dataclass(frozen=True)
class RankTraffic:
    """The bytes of each pair of ranks that communicates, without those of a rank to itself.

    `senders`, `receivers`, `sent_bytes` have one element for each pair, ordered by sender, then by receiver.
    """

    source: str
    ranks: int
    senders: Integers
    receivers: Integers
    sent_bytes: Integers

    def between(self) -> tuple[Integers, Integers, Integers]:
        """Each pair once, in both directions together: lower ranks, higher ranks, bytes."""
        low, high = np.minimum(self.senders, self.receivers), np.maximum(self.senders, self.receivers)
        pairs, place = np.unique(low * self.ranks + high, return_inverse=True)
        sums = np.zeros(len(pairs), dtype=np.int64)
        np.add.at(sums, place, self.sent_bytes)
        return pairs // self.ranks, pairs % self.ranks, sums


def read_traffic(path: str | Path) -> RankTraffic:
    """Reads a GOAL trace, or a square matrix of bytes: a row for each sender, numbers divided by spaces or commas.

    Raises InputError, which names the line, for anything else.
    """
    file = Path(path)
    try:
        text = read_text(file, MOST_FILE_BYTES)
    except UnreadableError:
        text = ""  # read_trace() gives the reason, and reads larger files
    first = next((line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")), "")
    if re.match(r"\s*[0-9.+-]", first):
        return _of_matrix(text, str(path))
    schedule = read_trace(path)
    senders, receivers, _, sent = schedule.traffic()
    return _of_pairs(str(path), schedule.rank_count, senders, receivers, sent)


def _of_matrix(text: str, name: str) -> RankTraffic:
    rows: list[list[int]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.partition("#")[0]
        words = [word for word in re.split(r"[\s,;]+", content) if word]
        if not words:
            continue
        place = f"{name}:{number}"
        for word in words:
            if not re.fullmatch(r"[0-9]+", word) or int(word) > _MOST_BYTES:
                raise InputError(place, word, "a number of bytes, 0 or more, as a whole number")
        if rows and len(words) != len(rows[0]):
            raise InputError(place, f"{len(words)} numbers", f"{len(rows[0])}, as in the first row")
        rows.append([int(word) for word in words])
    if len(rows) != len(rows[0]):
        raise InputError(name, f"{len(rows)} rows", f"a square matrix: {len(rows[0])} rows, one for each rank")
    matrix = np.array(rows, dtype=np.int64)
    senders, receivers = np.nonzero(matrix)
    return _of_pairs(name, len(rows), senders, receivers, matrix[senders, receivers])


def _of_pairs(source: str, ranks: int, senders: Integers, receivers: Integers, sent: Integers) -> RankTraffic:
    counts = (senders != receivers) & (sent > 0)
    return RankTraffic(source, ranks, senders[counts], receivers[counts], sent[counts])
