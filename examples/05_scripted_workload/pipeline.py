"""A wavefront through all nodes: each waits for its left neighbour, computes, and passes its result on."""

import apenet

BLOCKS = 8
BLOCK_BYTES = 16384


def program(rank):
    sent = None
    for _ in range(BLOCKS):
        if rank.id > 0:
            yield rank.recv(rank.id - 1)
        yield rank.compute_us(20)
        if sent:
            yield rank.wait(sent)
        if rank.id + 1 < rank.count:
            sent = yield rank.isend(rank.id + 1, BLOCK_BYTES)
    return rank.now_us


for machine in ("ideal", "ape16", "ape128"):
    result = apenet.workload(program, n=16, machine=machine)
    print(f"{machine:8} {result.virtual_time_us:9.2f} us, {result.messages} messages")
