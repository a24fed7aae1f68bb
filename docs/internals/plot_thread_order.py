"""Draws docs/internals/thread-order.png: the actions of two threads of each of two ranks, in their order.

    python docs/internals/plot_thread_order.py

The numbers are those of the rule: actions are sorted by time, rank and number of the thread.
"""

from pathlib import Path

import matplotlib.pyplot as plt

HERE = Path(__file__).parent
# Rank and thread of each lane, from above.
LANES = ((0, 0), (0, 1), (1, 0), (1, 1))
# When each thread begins and ends to compute, in us.
COMPUTES = {
    (0, 0): ((0, 2), (2, 3), (3, 5.5)),
    (0, 1): ((0, 1), (2, 2.6)),
    (1, 0): ((4.3, 5.1),),
    (1, 1): ((0, 0.5), (4.3, 5.5)),
}
# When it waits, and where.
WAITS = {
    (0, 1): ((1, 2, "for the lock"), (2.6, 5.5, "sleeps")),
    (1, 0): ((0, 4.3, "in MPI_Recv"), (5.1, 5.5, "")),
    (1, 1): ((0.5, 4.3, "at the condition"),),
}
# Rank, thread, time, what it does.
ACTIONS = (
    (0, 1, 1, "lock"),
    (0, 0, 2, "unlock"),
    (0, 1, 2, "locks"),
    (0, 1, 2.6, "write"),
    (0, 0, 3, "MPI_Send"),
    (1, 0, 0, "MPI_Recv"),
    (1, 1, 0.5, "wait"),
    (1, 0, 4.3, "receives, signal"),
    (1, 1, 4.3, "goes on"),
    (1, 0, 5.1, "join"),
)
# Pairs of actions: one thread wakes the other, or a message.
ARROWS = (((0, 0, 2), (0, 1, 2)), ((0, 0, 3), (1, 0, 4.3)), ((1, 0, 4.3), (1, 1, 4.3)))


def height(rank: int, thread: int) -> float:
    """Where a thread's lane is."""
    return -LANES.index((rank, thread)) - 0.4 * rank


def main() -> None:
    figure, plot = plt.subplots(figsize=(9, 3.6), layout="constrained")
    for lane in LANES:
        plot.plot((0, 5.5), (height(*lane),) * 2, color="0.8", linewidth=1, zorder=0)
        for begin, end in COMPUTES[lane]:
            plot.barh(height(*lane), end - begin, left=begin, height=0.22, color="tab:blue", zorder=1)
        for begin, end, where in WAITS.get(lane, ()):
            plot.barh(height(*lane), end - begin, left=begin, height=0.22, color="0.88", hatch="///", edgecolor="0.7")
            plot.text((begin + end) / 2, height(*lane) + 0.2, where, ha="center", fontsize=8, color="0.35")
    for begin, end in ARROWS:
        plot.annotate(
            "",
            xy=(end[2], height(*end[:2])),
            xytext=(begin[2], height(*begin[:2])),
            arrowprops={"arrowstyle": "->", "color": "tab:red", "shrinkA": 8, "shrinkB": 8, "linewidth": 1.4},
        )
    ordered = sorted(ACTIONS, key=lambda action: (action[2], action[0], action[1]))
    for number, (rank, thread, time, what) in enumerate(ordered, 1):
        plot.text(
            time,
            height(rank, thread),
            str(number),
            ha="center",
            va="center",
            fontsize=8,
            color="white",
            bbox={"boxstyle": "circle,pad=0.25", "color": "tab:red"},
            zorder=3,
        )
        plot.text(time + 0.1, height(rank, thread) + (0.2 if (rank, thread) == (0, 0) else -0.36), what, fontsize=8)
    plot.set_yticks([height(*lane) for lane in LANES], [f"rank {rank}, thread {thread}" for rank, thread in LANES])
    plot.set_ylim(-4, 0.6)
    plot.set_xlim(-0.2, 5.7)
    plot.set_xlabel("virtual time, µs")
    for side in ("top", "right", "left"):
        plot.spines[side].set_visible(False)
    plot.tick_params(axis="y", length=0)
    figure.savefig(HERE / "thread-order.png", dpi=110)


if __name__ == "__main__":
    main()
