"""The figures of the literature, and the measurements that belong to each."""

from __future__ import annotations

from apenet.reproduce.figures import Curve, FigureSpec
from apenet.reproduce.random_access import LAYERS, AccessCurve, Placement
from apenet.reproduce.sweeps import Sweep
from apenet.reproduce.tasks import Growth, LoadRun

_CHANNELS = (1, 2, 4, 8)
_2004 = "hep-lat/0409071"
_2005 = "PoS(LAT2005)100"
_V5 = "poster of CHEP 2016"
_EXTOLL = "Kujat, Silla, Duato, Froening, The New EXTOLL Conduit for the GASNet Networking Layer"
_QPACE = "slides of DESY Zeuthen, 18 January 2011"
_OSU = "Open MPI users list, 2011-07-15, D. Warren: OSU benchmarks 3.3, Open MPI 1.5.3"
_OTHER_HOSTS = "measured on hosts that are not named, with adapters of the same family"
_FIT = "published points: the published parameters of the fit, evaluated (shown for 8 channels only), not measurements"
_ACCESS = (
    "rates that come with the package, measured by `apenet reproduce --random-access` and not in this run; every "
    "update is a message of its own; 1024 processes fill all 64 nodes"
)


def _grown(label: str, machine: str) -> Curve:
    partitions = (64, 128, 256, 512, 1024, 2048)
    return Curve(label, Growth(machine=machine, test="bisection", size=16384, partitions=partitions))


def _qpace(test: str, window: int | None = None) -> tuple[Curve, ...]:
    task = Sweep("qpace", test, "128:2048", channels=_CHANNELS, window=window)
    return tuple(Curve(f"{channels} channel{'s' if channels > 1 else ''}", task, channels) for channels in _CHANNELS)


def _accesses(machine: str, label: str, placement: Placement) -> tuple[Curve, ...]:
    names = {"velo": "VELO", "gasnet": "GASNet", "mpi": "MPI"}
    return tuple(Curve(f"{names[layer]}, {label}", AccessCurve(machine, layer, placement)) for layer in LAYERS)


def _bandwidth_2004() -> tuple[Curve, ...]:
    return tuple(
        Curve(
            f"{'bi' if test == 'bidirectional' else 'uni'}directional, {name}",
            Sweep("apenet-2004", test, "16:1M", memory=memory),
        )
        for test in ("bidirectional", "pingpong")
        for memory, name in (("host", "zero-copy"), ("host-copied", "copied"))
    )


FIGURES = [
    FigureSpec(
        "2004-latency",
        "APENet 2004: latency",
        f"{_2004}, figure of latency, 16 bytes to 16 KiB",
        "time_us",
        (Curve("half round trip", Sweep("apenet-2004", "pingpong", "16:1M")),),
        ("apenet-2004.latency_small_page", "apenet-2004.latency_small_bound", "apenet-2004.latency_4096_lower_bound"),
        "the measured values of the figure are lost in the available copy of the text",
    ),
    FigureSpec(
        "2004-bandwidth",
        "APENet 2004: bandwidth, zero-copy and copied",
        f"{_2004}, figure of bandwidth, 16 bytes to 1 MiB",
        "bandwidth_mib_s",
        _bandwidth_2004(),
        ("apenet-2004.uni_bw", "apenet-2004.bidir_bw_sat"),
    ),
    FigureSpec(
        "2005-latency",
        "APE128, 2005: one way and round trip through MPI",
        f"{_2005}, Fig. 3",
        "time_us",
        (
            Curve("round trip", Sweep("ape128", "roundtrip", "16:1M", layer="mpi")),
            Curve("one way (a gap)", Sweep("ape128", "oneway", "16:1M", layer="mpi")),
        ),
        ("apenet-2005.rtt_min", "apenet-2005.oneway_min"),
    ),
    FigureSpec(
        "2005-bandwidth",
        "APE128, 2005: bandwidth through MPI",
        f"{_2005}, Fig. 4",
        "bandwidth_mib_s",
        (
            Curve("bidirectional", Sweep("ape128", "bidirectional", "16:1M", layer="mpi")),
            Curve("unidirectional", Sweep("ape128", "unidirectional", "16:1M", layer="mpi", window=1)),
        ),
        ("apenet-2005.bidir_bw_peak", "apenet-2005.uni_bw_peak"),
        "the step of the unidirectional curve: above the eager limit MPI_Send and MPI_Recv wait for the handshake of "
        "each message, and 547 MiB/s fall to 328; with 64 messages under way the step is 1 %",
    ),
    FigureSpec(
        "v5-bandwidth",
        "APEnet+ V5: one-way and one-way with flush",
        f"{_V5}, bandwidth",
        "bandwidth_mb_s",
        (
            Curve("flush (TX completions)", Sweep("apenetplus-v5", "flush", "32:4M")),
            Curve("one way (all completions)", Sweep("apenetplus-v5", "oneway", "32:4M", until="landed")),
        ),
        ("apenetplus-v5.mem_read_plateau",),
        "the curves of the poster are not in its text; beyond 512 KiB a buffer has more pages than the TLB entries",
    ),
    FigureSpec(
        "v5-latency",
        "APEnet+ V5: round trip",
        f"{_V5}, latency",
        "time_us",
        (
            Curve("host to host", Sweep("apenetplus-v5", "roundtrip", "32:64K")),
            Curve("GPU to GPU", Sweep("apenetplus-v5", "roundtrip", "32:64K", memory="gpu")),
            Curve(
                "GPU to GPU, staged in the hosts", Sweep("apenetplus-v5", "roundtrip", "32:64K", memory="gpu-staged")
            ),
        ),
        (),
        "the poster's curve is not in its text; the 5 us of the generation table are half a round trip here",
    ),
    FigureSpec(
        "extoll-pingpong",
        "EXTOLL: ping-pong of VELO, RMA, GASNet and MPI",
        f"{_EXTOLL}, Fig. 9",
        "time_us",
        (
            Curve("VELO", Sweep("extoll-64", "pingpong", "16:4K", path="send")),
            Curve("RMA", Sweep("extoll-64", "pingpong", "16:4K", path="put")),
            Curve("GASNet", Sweep("extoll-64", "pingpong", "16:4K", layer="gasnet")),
            Curve("MPI", Sweep("extoll-64", "pingpong", "16:4K", layer="mpi")),
        ),
        ("extoll.velo_latency",),
        "the values of Figs. 9 to 15 are not in the text",
    ),
    FigureSpec(
        "ibv-pingpong",
        "InfiniBand: ping-pong of Verbs and of GASNet's conduits",
        f"{_EXTOLL}, Figs. 1 and 10",
        "time_us",
        (
            Curve("Verbs", Sweep("l5530-pair", "pingpong", "16:4K")),
            Curve("GASNet, ibv", Sweep("l5530-pair", "pingpong", "16:4K", layer="gasnet", conduit="ibv")),
            Curve("GASNet, udp", Sweep("l5530-pair", "pingpong", "16:4K", layer="gasnet", conduit="udp")),
        ),
        (),
        "the values of both figures are not in the text",
    ),
    FigureSpec(
        "ib-osu-latency",
        "InfiniBand: OSU latency through MPI",
        _OSU,
        "time_us",
        (Curve("half round trip", Sweep("l5530-pair", "pingpong", "1:4M", layer="mpi")),),
        ("ib.osu_latency",),
        _OTHER_HOSTS,
    ),
    FigureSpec(
        "ib-osu-bandwidth",
        "InfiniBand: OSU bandwidth through MPI",
        _OSU,
        "bandwidth_mb_s",
        (Curve("one direction, window 64", Sweep("l5530-pair", "unidirectional", "8:4M", layer="mpi", window=64)),),
        ("ib.osu_bw",),
        _OTHER_HOSTS,
    ),
    FigureSpec(
        "udp-pingpong-caches",
        "UDP: ping-pong of datagrams and of GASNet's conduit, with and without caches",
        f"{_EXTOLL}, Fig. 8",
        "time_us",
        tuple(
            Curve(
                f"{label}, caches {caches}",
                Sweep("l5530-pair", "pingpong", "16:32K", layer=layer, conduit=conduit, caches=caches),
            )
            for caches in ("off", "on")
            for label, layer, conduit in (("UDP", "udp", None), ("GASNet, udp", "gasnet", "udp"))
        ),
        (),
        "the values of the figure are not in the text; the paper has no curve with caches, and does not name the "
        "machine: these are the hosts of its InfiniBand pair. How much slower software is without caches is assumed",
    ),
    FigureSpec(
        "extoll-randomaccess",
        "EXTOLL, 3D mesh: RandomAccess of VELO, GASNet and MPI",
        f"{_EXTOLL}, Figs. 12 to 14",
        "million_updates_s",
        (*_accesses("extoll-64", "16 on a node", "filled"), *_accesses("extoll-64", "spread", "spread")),
        (),
        _ACCESS,
    ),
    FigureSpec(
        "extoll-randomaccess-2d",
        "EXTOLL, 2D mesh: RandomAccess of VELO, GASNet and MPI",
        f"{_EXTOLL}, Fig. 15",
        "million_updates_s",
        (*_accesses("extoll-64-2d", "16 on a node", "filled"), *_accesses("extoll-64-2d", "spread", "spread")),
        (),
        _ACCESS,
    ),
    FigureSpec(
        "qpace-pingpong",
        "QPACE: ping-pong, T(N) on 1 to 8 virtual channels",
        f"{_QPACE}, ping-pong",
        "time_us",
        _qpace("pingpong"),
        tuple(f"qpace.pingpong.T.Nvc{channels}" for channels in _CHANNELS),
        _FIT,
    ),
    FigureSpec(
        "qpace-pingping",
        "QPACE: ping-ping, T(N) on 1 to 8 virtual channels",
        f"{_QPACE}, ping-ping",
        "time_us",
        _qpace("pingping"),
        tuple(f"qpace.pingping.T.Nvc{channels}" for channels in _CHANNELS),
        _FIT,
    ),
    FigureSpec(
        "qpace-bandwidth-blocking",
        "QPACE: ping-bandwidth, blocking",
        f"{_QPACE}, ping-bandwidth (blocking)",
        "bandwidth_mb_s",
        _qpace("unidirectional", window=1),
    ),
    FigureSpec(
        "qpace-bandwidth-nonblocking",
        "QPACE: ping-bandwidth, non-blocking",
        f"{_QPACE}, ping-bandwidth (non-blocking)",
        "bandwidth_mb_s",
        _qpace("unidirectional", window=16),
    ),
    FigureSpec(
        "bisection",
        "Bisection of growing partitions: torus against switches",
        f"{_QPACE}, bisection bandwidth of large partitions",
        "node_mib_s",
        (
            _grown("3D torus (ape128)", "ape128"),
            _grown("3D torus (qpace)", "qpace"),
            _grown("fat tree (pax, more chassis)", "pax"),
        ),
    ),
]

LOADS = [
    LoadRun(machine="ape128", test="halo", size=4096, mapping="random:1", title="halo of 4 KiB, ranks at random"),
    LoadRun(machine="ape128", test="halo", size=4096, mapping="linear", title="the same, neighbours on neighbours"),
    LoadRun(machine="ape128", test="bisection", size=4096, mapping="linear", title="one half against its mirror image"),
]
