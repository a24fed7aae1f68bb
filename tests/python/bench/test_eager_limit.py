"""Where a library leaves the eager protocol: at the size where the costs cross, and without a fall of the bandwidth."""

import itertools

import pytest

import apenet

MOST_EAGER_BYTES = 2**20
MACHINES = apenet.machine_names()
# Where a stream falls by more than a tenth, and why; nothing else may.
FALLS = {
    # The TLB's 128 entries reach 512 KiB. In a longer buffer each page is walked for again: 1.9 us for 4 KiB.
    "apenetplus-v5": [(2**19, 2**20)],
}


def limit_of(machine):
    return int(machine.file.software.mpi.eager_limit_bytes.value)


def round_trip_us(name, size_bytes, limit_bytes, turns=4):
    def program(rank):
        for _ in range(turns):
            for sender in (0, 1):
                yield rank.send(1 - sender, size_bytes) if rank.id == sender else rank.recv(sender)

    machine = apenet.machine(name, [f"software.mpi.eager_limit_bytes={limit_bytes}"])
    return max(apenet.workload(program, n=2, machine=machine, map=[0, 1]).finish_us) / turns


@pytest.mark.parametrize("name", MACHINES)
def test_the_limit_is_where_eager_and_rendezvous_cost_the_same_within_a_factor_of_2(name):
    limit = limit_of(apenet.machine(name))
    assert round_trip_us(name, limit // 2, MOST_EAGER_BYTES) <= round_trip_us(name, limit // 2, 0)
    if limit < MOST_EAGER_BYTES:
        assert round_trip_us(name, 2 * limit, MOST_EAGER_BYTES) >= round_trip_us(name, 2 * limit, 0)


@pytest.mark.parametrize("name", MACHINES)
def test_a_stream_does_not_fall_by_a_tenth_from_one_size_to_the_next(name):
    limit = limit_of(apenet.machine(name))
    sizes = sorted({2**power for power in range(4, 23)} | {limit, limit + 1})
    result = apenet.bench.unidirectional(name, sizes=sizes, layer="mpi", iterations=128)
    curve = zip(result.sizes_bytes.tolist(), result.bandwidths_mib_s, strict=True)
    falls = [(small[0], large[0]) for small, large in itertools.pairwise(curve) if large[1] < 0.9 * small[1]]
    assert falls == FALLS.get(name, [])
