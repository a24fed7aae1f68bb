"""Draws docs/models/tnw.png: T(N, Nvc) of ping-pong and ping-ping on qpace, and the published fits.

    python docs/models/plot_tnw.py

Takes seconds. This script evaluates the published formula for comparison; the simulator does not use it.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import apenet

HERE = Path(__file__).parent
CHANNELS = (1, 2, 4, 8)
SIZES = [128 * packets for packets in range(1, 17)]
# lambda (us), tau (us), beta (bytes per us) of each path: Boyanov, DESY Zeuthen, 18.01.2011.
PUBLISHED = {
    "pingpong": ((0.766, 0.57, 4084.74), (2.76, 0.037, 937.8)),
    "pingping": ((2.423, 0.326, 808.6), (1.795, 1.209, 1303.9)),
}


def published_us(test: str, channels: int, size: int) -> float:
    return max(latency + channels * (start + size / rate) for latency, start, rate in PUBLISHED[test])


def main() -> None:
    figure, plots = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharey=True)
    for (test, _), axes in zip(PUBLISHED.items(), plots, strict=True):
        for number, channels in enumerate(CHANNELS):
            result = apenet.bench.measure(
                test, apenet.machine("qpace"), sizes=",".join(map(str, SIZES)), layer="card", channels=channels
            )
            published = np.array([published_us(test, channels, size) for size in SIZES])
            errors = result.times_us / published - 1
            colour = f"C{number}"
            style = "-" if channels == max(CHANNELS) else ":"  # the others extrapolate the published fit
            axes.plot(SIZES, published, style, color=colour, label=f"{channels} channels")
            axes.plot(SIZES, result.times_us, "o", color=colour, markersize=4)
            print(f"{test}, {channels} channels: {errors.min():+.1%} to {errors.max():+.1%}")
        axes.set(title=test, xlabel="N, bytes on each channel", xscale="log", yscale="log")
        axes.set_xticks(SIZES[::5], [str(size) for size in SIZES[::5]], minor=False)
        axes.minorticks_off()
    plots[0].set(ylabel="T (us)")
    plots[0].legend(fontsize=8, title="published (dotted: extrapolated); dots: simulated")
    figure.savefig(HERE / "tnw.png", dpi=110)


if __name__ == "__main__":
    main()
