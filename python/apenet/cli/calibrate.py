"""apenet calibrate: measures a real fabric, and writes a machine from it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from apenet import fit as fits
from apenet.base.errors import ApenetError, InputError, NotWrittenError
from apenet.base.sizes import parse_sizes
from apenet.cli.common import (
    JsonOption,
    ToMachineOption,
    messages,
    output,
    path_of,
    print_json,
    print_tables,
    progress_bar,
)
from apenet.fit import MeasurementError
from apenet.fit import calibrate as calibrations
from apenet.fit.machine_file import check_machine_file
from apenet.fit.report import machine_report, number_text


def calibrate(
    provider: Annotated[
        str,
        typer.Option("--provider", metavar="NAME", help="Provider of libfabric: tcp, shm, verbs, efa, cxi and others."),
    ],
    sizes: Annotated[
        str, typer.Option("--sizes", metavar="MIN:MAX", help="Message sizes; they double from MIN to MAX.")
    ] = calibrations.DEFAULT_SIZES,
    samples: Annotated[
        int, typer.Option("--samples", help="Samples of each size; the result is their median.")
    ] = calibrations.DEFAULT_SAMPLES,
    window: Annotated[
        int, typer.Option("--window", help="Messages in flight in a stream.")
    ] = calibrations.DEFAULT_WINDOW,
    domain: Annotated[
        str | None, typer.Option("--domain", metavar="NAME", help="One of the provider's interfaces, such as mlx5_0.")
    ] = None,
    server: Annotated[bool, typer.Option("--server", help="Serve one client on another host.")] = False,
    client: Annotated[
        str | None, typer.Option("--client", metavar="HOST", help="Measure with the server on that host.")
    ] = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="TCP port on which client and server connect.")
    ] = calibrations.DEFAULT_PORT,
    libfabric: Annotated[
        Path | None,
        typer.Option(
            "--libfabric",
            metavar="FILE",
            parser=path_of("--libfabric", "a libfabric.so.1"),
            help="The libfabric.so.1 to measure with.",
        ),
    ] = None,
    machine_file: ToMachineOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure a real fabric. Runs on this host or between two, in real time, through libfabric."""
    if server:
        if client is not None:
            raise InputError("--client", client, "none with --server: one of the two on each host")
        calibrations.serve(
            provider,
            domain=domain,
            port=port,
            library=libfabric,
            listening=lambda found: messages().print(f"waiting for a client on port {found}", markup=False),
        )
        return
    if machine_file is not None:
        check_machine_file(machine_file)
    steps = 2 * len(parse_sizes(sizes)) + 2
    with progress_bar(f"measuring {provider}", steps) as progress:
        task = progress.task_ids[0]
        measured = calibrations.calibrate(
            provider,
            sizes=sizes,
            samples=samples,
            window=window,
            domain=domain,
            client=client,
            port=port,
            library=libfabric,
            progress=lambda _: progress.advance(task),
        )
    written = None
    failure: ApenetError | None = None
    if machine_file is not None:
        try:
            written = fits.write_machine(measured.measurements(), machine_file)
        except (NotWrittenError, MeasurementError) as error:
            failure = error  # raised after the measurement, which took a while, has been printed
    if as_json:
        print_json({**measured.to_json(), **({"machine": written.to_json()} if written is not None else {})})
    else:
        _print(measured)
        if written is not None:
            print_tables(machine_report(written))
    if failure is not None:
        raise failure


def _print(measured: calibrations.Calibration) -> None:
    console = output()
    console.print(f"# {measured.provider}, {measured.between}, {measured.library}", markup=False)
    console.print(f"# median of {measured.pingpong.samples} samples, in brackets their middle half", markup=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("# Size (B)", "Latency (us)", "", f"Stream of {measured.window} (us)", "", "Bandwidth (MiB/s)", ""):
        table.add_column(column, justify="left" if column.startswith("#") else "right", no_wrap=True)
    for index, size in enumerate(measured.pingpong.sizes_bytes):
        cells = [str(size)]
        marks = []
        for sweep in (measured.pingpong, measured.stream):
            low, high = sweep.quartile_low_us[index], sweep.quartile_high_us[index]
            cells.append(number_text(float(sweep.median_us[index])))
            cells.append(f"[{number_text(float(low))} .. {number_text(float(high))}]")
            marks += [sweep.test] if sweep.disturbed[index] else []
        cells.append(f"{size / 2**20 / measured.stream.median_us[index] * 1e6:.2f}")
        cells.append(f"disturbed: {', '.join(marks)}" if marks else "")
        table.add_row(*(Text(cell) for cell in cells))
    print_tables(table)
    content = measured.to_json()
    console.print(
        f"# {content['message_rate_per_second']:,.0f} messages per second at {measured.stream.sizes_bytes[0]} bytes",
        markup=False,
    )
    overheads = {"send": measured.send_us, "receive": measured.receive_us}
    costs = [f"a {name} {number_text(value)} us" for name, value in overheads.items() if value is not None]
    console.print(f"# CPU time: {', '.join(costs)}", markup=False)
    fitted = measured.fitted
    if fitted is not None:
        parameters = {"L": fitted.latency_us, "g": fitted.gap_us, "G": fitted.gap_per_byte_us}
        shown = [f"{name} {number_text(value.value)} us" for name, value in parameters.items() if value is not None]
        worst = fitted.in_sample.max_percent
        console.print(f"# LogGP: {', '.join(shown)}/byte; at worst {worst:.0f} % off", markup=False)
        for reason in fitted.unknown:
            console.print(Text.assemble(("unknown   ", "yellow"), reason))
    for warning in measured.warnings:
        console.print(Text.assemble(("note  ", "yellow"), warning))
