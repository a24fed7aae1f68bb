"""What QPACE's mechanism predicts when it is fitted to less than the machine file is."""

import numpy as np

from apenet import bench
from apenet.machine import machine

# The least squares of the relative error of the eleven values, found by differential evolution over 150 to 350 ns, 300
# to 900 ns, 500 to 1000 ns, 8 to 80 bytes and 2 to 12 packets.
OF_EIGHT_CHANNELS = (
    "card.operation_ns=276",
    "card.credit_ns=552",
    "card.put_latency_ns=811",
    "card.notify_latency_ns=811",
    "card.control_bytes=20",
    "card.receive_buffer_packets=3",
)


def test_a_fit_to_eight_channels_predicts_fewer():
    published = {
        (result.test, result.channels, point.size_bytes): point.value
        for key, result in machine("qpace").file.results.items()
        if ".T.Nvc" in key
        for point in result.points
    }
    assert len(published) == 40
    errors = {}
    for test in ("pingpong", "pingping"):
        found = bench.measure(test, machine("qpace", OF_EIGHT_CHANNELS), sizes="128:2048", channels=(1, 2, 4, 8))
        for channels, size, time_us in zip(found.channels, found.sizes_bytes, found.times_us, strict=True):
            key = (test, int(channels), int(size))
            errors[key] = time_us / published[key] - 1
    fitted = [error for key, error in errors.items() if key[1] == 8 or key == ("pingpong", 1, 128)]
    predicted = [error for key, error in errors.items() if key[1] != 8 and key != ("pingpong", 1, 128)]
    assert (len(fitted), len(predicted)) == (11, 29)
    assert np.sqrt(np.mean(np.square(fitted))) < 0.035
    assert np.sqrt(np.mean(np.square(predicted))) < 0.07
    assert np.abs(predicted).max() < 0.18
