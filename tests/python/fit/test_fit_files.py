"""Readers of apenet fit: output of real programs, and errors that name file, line and value."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import apenet as package
from apenet.fit import TESTS, Measurement, MeasurementError, parse, read
from apenet.fit.formats import quantities

FOLDER = Path(__file__).parent / "measurements"
OSU_HEADER = "# OSU MPI Latency Test v7.4\n# Size       Avg Latency(us)\n"


def csv(text: str, **options: str) -> Measurement:
    return parse("my.csv", text.encode(), **options)


def refused(content: str | bytes, **options: str) -> str:
    with pytest.raises(package.ApenetError) as caught:
        parse("my.txt", content if isinstance(content, bytes) else content.encode(), **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("file", "section", "test", "points", "size", "time_us"),
    [
        ("osu_latency.txt", None, "pingpong", 23, 4096, 2.20),
        ("osu_latency_tail.txt", None, "pingpong", 23, 8, 0.93),  # the average, not a percentile
        ("imb_mpi1.txt", "PingPong-2", "pingpong", 24, None, None),
        ("imb_mpi1.txt", "2", "pingping", 24, None, None),
        ("imb_mpi1.txt", "Uniband-2", "unidirectional", 24, None, None),
        ("imb_mpi1.txt", "Biband-2", "bidirectional", 23, 0, 2e6 / 2565875),
        ("perftest_send_lat.txt", None, "pingpong", 5, 1024, 1.75),
        ("osu_mbw_mr.txt", None, "unidirectional", 23, 8, 1e6 / 2278137.04),
    ],
)
def test_output_of_real_programs_is_read(file, section, test, points, size, time_us):
    measurement = read(FOLDER / file, section=section)
    assert (measurement.test, len(measurement)) == (test, points)
    if size is not None:
        (found,) = measurement.times_us[measurement.sizes_bytes == size]
        assert found == pytest.approx(time_us, rel=1e-6)


def test_osu_megabytes_are_decimal():
    text = "# OSU MPI Bandwidth Test v7.4\n# Size      Bandwidth (MB/s)\n1000000  500.00\n2000000 1000.00\n"
    assert parse("bw", text.encode()).times_us.tolist() == pytest.approx([2000, 2000])
    both = text.replace("MPI Bandwidth", "MPI Bi-Directional Bandwidth")
    assert parse("bw", both.encode()).times_us.tolist() == pytest.approx([4000, 4000])


def test_osu_pairs_are_messages_at_once():
    text = (
        "# OSU MPI Multiple Bandwidth / Message Rate Test v7.4\n# [ pairs: 4 ] [ window size: 64 ]\n"
        "# Size                  MB/s        Messages/s\n8   32.00   4000000.00\n"
    )
    measurement = parse("mr", text.encode())
    assert measurement.channels.tolist() == [4]
    assert measurement.times_us.tolist() == [1.0]  # four messages in a microsecond


def test_perftest_megabytes_are_binary_and_both_directions_together():
    measurement = read(FOLDER / "perftest_write_bw.txt")
    assert measurement.test == "bidirectional"
    assert measurement.times_us.tolist() == pytest.approx(
        [2 * 1024 / (2000 * 2**20) * 1e6, 2 * 65536 / 8000 / 1.048576]
    )
    gigabits = (FOLDER / "perftest_write_bw.txt").read_text().replace("MB/sec", "Gb/sec")
    assert parse("gb", gigabits.encode()).times_us[0] == pytest.approx(2 * 1024 * 8 / 2000e9 * 1e6)


def test_perftest_sides_of_both_directions_count_their_own_sends():
    header = " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
    row = " 1048576    1000           {0}.00            {0}.00              0.002000\n"
    dashes = "-" * 87 + "\n"
    text = f"{dashes}                    Send Bidirectional BW Test\n{dashes}{header}{row.format(2000)}{dashes}"
    for side, rate in (("Local", 1250), ("Remote", 750)):
        text += f"\n {side} results: \n{dashes}{header}{row.format(rate)}{dashes}"
    both, local, remote = (parse("both", text.encode(), section=number) for number in "123")
    assert [one.test for one in (both, local, remote)] == ["bidirectional"] * 3
    assert both.times_us.tolist() == pytest.approx([1000])
    assert local.times_us.tolist() == pytest.approx([800])
    assert remote.times_us.tolist() == pytest.approx([1e6 / 750])
    assert "no row of the table" not in " ".join(both.notes)
    with pytest.raises(MeasurementError, match=r"line 2\), 2 \(Send Bidirectional BW Test, local results, line 10\)"):
        parse("both", text.encode())


def test_fabtests_sizes_and_the_test_that_only_one_of_them_names():
    text = (
        "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n"
        "64      1k      =1k      125k        0.01s     12.80       5.00       0.20\n"
        "1.5k    1k      =1k      2.9m        0.01s    256.00       6.00       0.17\n"
        "1m      1k      =1k      1.9g        0.42s   4993.22     210.00       0.00\n"
    )
    measurement = parse("fi", text.encode())
    assert measurement.sizes_bytes.tolist() == [64, 1536, 2**20]
    assert measurement.test == "pingpong"
    other = text.replace("#sent   #ack     ", "iters   ").replace("=1k      ", "")
    message = refused(other)
    assert "does not say which test" in message
    assert "--test with one of pingpong" in message
    assert parse("fi", other.encode(), test="unidirectional").test == "unidirectional"


def test_a_real_disturbed_measurement_is_refused_at_its_line():
    with pytest.raises(MeasurementError, match=r"fi_pingpong\.txt:\d+: .* us for .*disturbed measurement"):
        read(FOLDER / "fi_pingpong.txt")


def test_several_tables_need_a_choice():
    with pytest.raises(MeasurementError, match=r"6 tables: expected --section with one of 1 \(PingPong-2, line \d+\)"):
        read(FOLDER / "imb_mpi1.txt")
    with pytest.raises(package.InputError, match="--section"):
        read(FOLDER / "imb_mpi1.txt", section="Bcast")
    with pytest.raises(package.InputError, match="several of"):
        read(FOLDER / "imb_mpi1.txt", section="ping")
    assert read(FOLDER / "imb_mpi1.txt", section="pingpong").section == "PingPong-2"
    two = OSU_HEADER + "1 1.0\n2 1.1\n\n" + OSU_HEADER + "1 2.0\n2 2.1\n"
    assert "2 tables" in refused(two)
    assert parse("two", two.encode(), section="2").times_us.tolist() == [2.0, 2.1]


@pytest.mark.parametrize(
    ("header", "row", "time_us"),
    [
        ("size_bytes,latency_us", "100,2.5", 2.5),
        ("Size (B);Latency (ns)", "100;2500", 2.5),
        ("size_kib\ttime_ms", "4\t0.001", 1.0),
        ("bytes bandwidth_mb_s", "1000 100", 10.0),
        ("Message size [bytes],Bandwidth [MiB/s]", "1048576,1000", 1000.0),
        ("size_bytes,round_trip_us", "100,5", 2.5),
        ("size_bytes,roundtrip_us", "100,5", 2.5),
        ("size_bytes,half_rtt_us", "100,2.5", 2.5),
        ("size_bytes,bandwidth_gbit_s", "1000,8", 1.0),
    ],
)
def test_columns_say_their_unit(header, row, time_us):
    measurement = csv(f"# a comment\n{header}\n{row}\n", test="pingpong")
    assert measurement.times_us.tolist() == pytest.approx([time_us])


def test_our_own_json(apenet):
    done = apenet("bench", "pingpong", "--machine", "ideal", "--sizes", "16:1K", "--json")
    measurement = parse("own.json", done.stdout.encode())
    assert (measurement.form, measurement.test) == ("apenet bench", "pingpong")
    assert measurement.sizes_bytes.tolist() == [16, 32, 64, 128, 256, 512, 1024]
    whole = apenet("bench", "roundtrip", "--machine", "ideal", "--sizes", "16:1K", "--json")
    assert np.allclose(parse("own.json", whole.stdout.encode()).times_us, measurement.times_us, rtol=1e-6)


def test_json_of_others():
    points = {"test": "oneway", "channels": 2, "points": [{"size_bytes": 8, "time_us": 1}]}
    assert parse("j", json.dumps(points).encode()).channels.tolist() == [2]
    arrays = {"size_bytes": [8, 16], "latency_us": [1.0, 1.5]}
    assert parse("j", json.dumps(arrays).encode()).times_us.tolist() == [1.0, 1.5]
    assert "points[1]: inf" in refused('[{"size_bytes": 8, "latency_us": 1}, {"size_bytes": 9, "latency_us": 1e999}]')
    assert "NaN" in refused('[{"size_bytes": 8, "latency_us": NaN}]')
    assert 'my.txt:1: "halo"' in refused('{"test": "halo", "points": [{"size_bytes": 8, "time_us": 1}]}')
    assert "my.txt:2: no JSON" in refused('{"test":\n }')


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"", "my.txt: the file is empty: expected measured points"),
        (b"  \n\n", "the file is empty"),
        (b"1 2\n" * 200_000, "my.txt: 200001 lines: expected a table of at most 100000 lines"),
        (b"\x89PNG\r\n\x1a\n\0\0", "a picture (PNG)"),
        (b"\xff\xfes\0i\0", "UTF-16"),
        (b"size_bytes,latency_us\n1,2\n\xe9,3\n", "my.txt:3: the byte 0xe9: expected text in UTF-8"),
        (b"size,latency\n1,2\n", 'my.txt:1: "size": expected a name with its unit, such as size_bytes'),
        (b"size_bytes,latency_parsecs\n1,2\n", 'my.txt:1: "latency_parsecs": expected a unit of a time: s, '),
        (b"size_bytes,latency\n1,2\n", 'my.txt:1: "latency": expected a name with its unit'),
        (b"size_bytes,speed_us\n1,2\n", "expected a column with a time or a bandwidth"),
        (b"bytes,a_latency_us\n1,2\n", 'bandwidth_mib_s; "a_latency_us" may be "latency_us"'),
        (b"a,b\n1,2\n", "expected a header that names its columns"),
        (b"size_bytes,latency_us,time_us\n1,2,3\n", 'columns "latency_us" and "time_us": expected one column'),
        (b"size_bytes;latency_us\n1;2,5\n", 'my.txt:2: "2,5": expected latency_us with a decimal point'),
        (b"size_bytes;latency_us\n1.024;2.5\n", 'my.txt:2: "1.024": expected size_bytes: a whole number, without'),
        (b"size_bytes;latency_us\n1'024;2.5\n", "without thousands separators"),
        (b"size_bytes,latency_us\n1,2,5\n", "2 columns as in the header, not 3: a comma is between columns"),
        (b"size_bytes,latency_us\n1,nan\n", 'my.txt:2: "nan": expected latency_us, a finite number'),
        (b"size_bytes,latency_us\n1,inf\n", "a finite number"),
        (b"size_bytes,latency_us\n1,1e999\n", "a finite number"),
        (b"size_bytes,latency_us\n1,-2\n", 'my.txt:2: "-2": expected latency_us greater than zero'),
        (b"size_bytes,latency_us\n1,0\n", "greater than zero"),
        (b"size_bytes,latency_us\n-1,2\n", 'my.txt:2: "-1": expected size_bytes of at least 0'),
        (b"size_bytes,latency_us\n1,fast\n", "a number such as 12.5"),
        (b"size_bytes,latency_us\n1,\n", "my.txt:2: nothing: expected latency_us"),
        (b"size_bytes,latency_us\n8,1\n4,2\n", "my.txt:3: size 4 after size 8: expected rising sizes"),
        (b"size_bytes,latency_us\n8,1\n8,1\n", "my.txt:3: size 8 after size 8"),
        (b"size_bytes,latency_us\n8,100\n16,3\n", "my.txt:3: 3 us for 16 bytes, after 100 us for 8 (line 2)"),
        (b"size_bytes,time_us\n8,1\n", "does not say which test it is of: expected --test with one of"),
        (b"size_bytes,latency_us\n", "no rows in table"),
        (b"size_bytes,bandwidth_mb_s\n0,5\n", "a size above zero for a bandwidth"),
        (OSU_HEADER.encode() + b"1 1.0\n2 1,1\n", 'my.txt:4: "1,1": expected a latency in us with a decimal point'),
        (OSU_HEADER.encode() + b"1 1.0\n2\n", 'my.txt:4: "2": expected 2 columns as in the header, line 2'),
        (OSU_HEADER.encode() + b"1 1.0\n2 1.12 1.1\n", 'my.txt:4: "2 1.12 1.1": expected 2 columns as in the header'),
        (b"# OSU MPI Latency Test\n# Size  Latency (us)  Validation\n1 1.0 2 Pass\n", "expected 3 columns as in the"),
        (b"# OSU Multiple Bandwidth / Message Rate Test\n# Size  MB/s  Messages/s\n1 5 2 3\n", "expected 3 columns as"),
        (b"# Benchmarking PingPong\n#bytes #repetitions t[usec] Mbytes/sec\n1 10 1.0 1.0 2\n", "expected 4 columns as"),
        (OSU_HEADER.encode() + b"1 1.0\n2 nan\n", 'my.txt:4: "nan"'),
        (b"# OSU MPI Latency Test\n1 1.0\n", '"# Size ..." with the units of the columns above the first row'),
        (b"# OSU MPI Latency Test\n# Size  Cycles\n1 1.0\n", 'a first column "Latency (us)"'),
        (b"# OSU MPI Allreduce Latency Test\n# Size Avg Latency(us)\n1 1\n", "the output of one of osu_mbw_mr"),
    ],
)
def test_bad_files_are_named(content, named):
    assert named in refused(content)


def test_mixed_megabytes_are_found():
    rows = [(2**k, 1 + 2**k * 1e-3) for k in range(4, 12)]
    text = "size_bytes,latency_us,bandwidth_mb_s\n"
    right = text + "".join(f"{n},{t},{n / t}\n" for n, t in rows)
    mixed = text + "".join(f"{n},{t},{n / t / quantities.MIB_OVER_MB}\n" for n, t in rows)
    assert len(csv(right)) == len(rows)
    assert 'my.txt:1: "bandwidth_mb_s": expected the bandwidth in its own unit' in refused(mixed)
    assert "MiB (2^20 bytes)" in refused(mixed)
    swapped = mixed.replace("_mb_s", "_mib_s")
    assert len(csv(swapped)) == len(rows)
    wrong = text + "".join(f"{n},{t},{7 * n / t}\n" for n, t in rows)
    assert "7 times size over time" in refused(wrong)


def test_lines_of_others_are_not_passed_over_in_silence():
    text = OSU_HEADER + "1 1.000\nslurmstepd: a message\n2 1.100\n"
    (note,) = parse("my", text.encode()).notes
    assert 'line 4: "slurmstepd: a message"' in note


def test_too_few_digits_are_reported():
    (note,) = parse("my", (OSU_HEADER + "1 0.20\n2 0.21\n").encode()).notes
    assert "0.2 us for 1 bytes may be off by 2.5 %" in note


@settings(max_examples=300, derandomize=True)
@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(content):
    try:
        parse("any", content)
    except package.ApenetError as error:
        assert "expected" in str(error)


LINES = """# OSU MPI Latency Test|# Size  Latency (us)|# Benchmarking PingPong|#bytes #repetitions t[usec]
 #bytes #iterations t_typical[usec]|bytes #sent #ack total time MB/sec usec/xfer Mxfers/sec
1 1.0|2 100 1.5|1k 2 3 4 5 6 7 8|nan nan|1e400 1|,|"|{|}|[1]|\u0663 1|size_bytes,latency_us|8,1|16,1.5|-1,1|1,1,1
{"size_bytes": [1], "latency_us": [1]}"""
PIECES = st.sampled_from(LINES.replace("\n", "|").split("|"))


@settings(max_examples=300, derandomize=True)
@given(st.lists(PIECES, max_size=8), st.sampled_from([None, *TESTS]))
def test_any_mixture_of_formats_is_read_or_refused(pieces, test):
    try:
        measurement = parse("any", "\n".join(pieces).encode(), test=test)
    except package.ApenetError as error:
        assert "expected" in str(error)
    else:
        assert len(measurement) > 0
        assert (measurement.times_us > 0).all()
        assert np.isfinite(measurement.times_us).all()


@settings(max_examples=100, derandomize=True)
@given(st.lists(st.tuples(st.integers(1, 2**30), st.floats(1e-3, 1e6)), min_size=1, max_size=20))
def test_written_tables_are_read_back(rows):
    sizes = sorted({size for size, _ in rows})
    times = sorted(time for _, time in rows)[: len(sizes)]
    text = "size_bytes,latency_us\n" + "".join(f"{n},{t!r}\n" for n, t in zip(sizes, times, strict=True))
    measurement = csv(text)
    assert measurement.sizes_bytes.tolist() == sizes
    assert measurement.times_us.tolist() == times


def osu(rows: str) -> str:
    return "# OSU MPI Latency Test v7.4\n# Size       Latency (us)        Validation\n" + rows


IMB_HEADER = (
    "# Benchmarking PingPong\n# #processes = 2\n       #bytes #repetitions      t[usec]   Mbytes/sec      defects\n"
)
IMB_END = "\n# All processes entering MPI_Finalize\n"
PERFTEST_HEADER = "                    Send Latency Test\n #bytes #iterations    t_typical[usec]    t_avg[usec]\n"
FABTESTS_HEADER = "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n"


@pytest.mark.parametrize(
    ("content", "kept", "note"),
    [
        (
            IMB_HEADER + "0 1000 1.02 0.00 12.00\n1 1000 1.05 0.95 0.00\n2 1000 1.06 1.9 0.00\n" + IMB_END,
            [1, 2],
            "1 of 3 rows is left out, because the file marks it as invalid: my.txt:4 (defects 12.00)",
        ),
        (
            IMB_HEADER + "1 1000 1.05 0.95 0.00\n2 1000 1.06 1.9 0.00\n4 time-out.; Time limit is over;\n" + IMB_END,
            [1, 2],
            "my.txt:6 (time-out)",
        ),
        (
            IMB_HEADER + "1 1000 1.05 0.95 0.00\n2 out-of-mem.; needed X=   1.0 GB\n4 1000 1.1 3 0\n" + IMB_END,
            [1, 4],
            "my.txt:5 (out-of-mem)",
        ),
        (
            osu("1 1.0 Pass\n2 1.1 Fail\n4 1.2 Pass\n8 1.3 Fail\n16 1.4 Pass\n"),
            [1, 4, 16],
            "2 of 5 rows are left out, because the file marks them as invalid: the first my.txt:4 (Validation Fail)",
        ),
        (PERFTEST_HEADER + " 2 1000 1.5 1.6\n 4 1000 Fail 1.6\n 8 1000 1.5 1.6\n", [2, 8], "my.txt:4 (Fail)"),
        (
            FABTESTS_HEADER
            + "64 10 =10 1.2k 0.00s 10.00 6.40 0.16\n128 10 error 0 0 0 0 0\n256 10 =10 5k 0.00s 40 6.4 1\n",
            [64, 256],
            "my.txt:3 (error)",
        ),
        ("size_bytes,latency_us,valid\n1,1,true\n2,9,false\n4,1.1,yes\n", [1, 4], "my.txt:3 (valid false)"),
        ("size_bytes,latency_us,errors\n1,1,0\n2,9,3\n4,1.1,\n", [1, 4], "my.txt:3 (errors 3)"),
        ("size_bytes,latency_us,status\n1,1,0\n2,nan,124\n4,1.1,ok\n", [1, 4], "my.txt:3 (status 124)"),
        ("size_bytes,latency_us,Validation\n1,1,pass\n2,9,FAIL\n4,1.1,pass\n", [1, 4], "my.txt:3 (Validation FAIL)"),
        (
            '[{"size_bytes": 1, "latency_us": 1}, {"size_bytes": 2, "latency_us": null, "error": "lost"}, '
            '{"size_bytes": 4, "latency_us": 1.1, "error": null}]'.replace('"lost"', "true"),
            [1, 4],
            "points[1]: error true",
        ),
        ("size_bytes,latency_us,corrupted\n1,1,0\n2,9,1\n4,1.1,0\n", [1, 4], "my.txt:3 (corrupted 1)"),
        ("size_bytes,latency_us,#wrong\n1,1,0\n2,9,3\n4,1.1,0\n", [1, 4], "my.txt:3 (#wrong 3)"),
        ("size_bytes,latency_us,exitstatus\n1,1,0\n2,9,-11\n4,1.1,0\n", [1, 4], "my.txt:3 (exitstatus -11)"),
        ("size_bytes,latency_us,retCode\n1,1,0\n2,9,1\n4,1.1,0\n", [1, 4], "my.txt:3 (retCode 1)"),
        ("size_bytes,latency_us,nerr\n1,1,N/A\n2,9,1\n4,1.1,0\n", [1, 4], "my.txt:3 (nerr 1)"),
        ("size_bytes,latency_us,Errors (count)\n1,1,none\n2,9,1\n4,1.1,no errors\n", [1, 4], "(Errors (count) 1)"),
        ("size_bytes,latency_us,result\n1,1,OK\n2,9,KO\n4,1.1,OK\n", [1, 4], "my.txt:3 (result KO)"),
        ("size_bytes,latency_us,what\n1,1,\n2,9,not valid\n4,1.1,not bad\n", [1, 4], "my.txt:3 (what not valid)"),
        ("size_bytes,latency_us,state\n1,1,done\n2,9,NODE_FAIL\n4,1.1,done\n", [1, 4], "my.txt:3 (state NODE_FAIL)"),
        ("size_bytes,latency_us,status\n1,1,DONE\n2,9,OUT_OF_MEMORY\n4,1.1,done\n", [1, 4], "(status OUT_OF_MEMORY)"),
        (
            IMB_HEADER
            + "1 10 1.05 0.95 0.00\n1: Error PingPong,size = 2,sample #0\nProcess 1: Got invalid buffer:\n"
            + "Buffer entry: 0.500000\n2 10 9.06 1.9 0.00\n4 10 1.1 3.6 0.00\n"
            + IMB_END,
            [1, 4],
            'my.txt:8 (line 5: "1: Error PingPong,size = 2,sample #0")',
        ),
        (
            osu("1 1.0 Pass\n2 9.1 Pass\nDATA VALIDATION ERROR: osu_latency exited with status 1 on message size 2.\n"),
            [1],
            "my.txt:4 (line 5:",
        ),
        (
            '[{"size_bytes": 1, "latency_us": 1}, {"size_bytes": 2, "latency_us": 9, "result": {"ok": false}}, '
            '{"size_bytes": 4, "latency_us": 1.1, "result": {"ok": true}}]',
            [1, 4],
            "points[1]: result.ok false",
        ),
        (
            FABTESTS_HEADER
            + "1  1k  =1k  1k  0.00s  0.67  1.50  0.0\n2  1k  =0  2k  0.00s  1.33  1.50  0.1\n"
            + "4  1k  =1k  4k  0.00s  2.66  1.50  0.2\n",
            [1, 4],
            "0 of 1k transfers acknowledged",
        ),
        ("size_bytes,latency_us,exit_code\n1,1,0\n2,9,139\n4,1.1,0\n", [1, 4], "my.txt:3 (exit_code 139)"),
        ("size_bytes,latency_us,exit_status\n1,1,0\n2,9,1\n4,1.1,0\n", [1, 4], "my.txt:3 (exit_status 1)"),
        ("size_bytes,latency_us,data_errors\n1,1,0\n2,9,12\n4,1.1,0\n", [1, 4], "my.txt:3 (data_errors 12)"),
        ("size_bytes,latency_us,validation_errors\n1,1,0\n2,9,2\n4,1.1,0\n", [1, 4], "(validation_errors 2)"),
        ("size_bytes,latency_us,n_errors\n1,1,0\n2,9,2\n4,1.1,0\n", [1, 4], "(n_errors 2)"),
        ("size_bytes,latency_us,crc_ok\n1,1,TRUE\n2,9,FALSE\n4,1.1,TRUE\n", [1, 4], "my.txt:3 (crc_ok FALSE)"),
        ("size_bytes,latency_us,usable\n1,1,true\n2,9,false\n4,1.1,true\n", [1, 4], "my.txt:3 (usable false)"),
        ("size_bytes,latency_us,is_good\n1,1,yes\n2,9,no\n4,1.1,yes\n", [1, 4], "my.txt:3 (is_good no)"),
        ("size_bytes,latency_us,err\n1,1,0\n2,9,1\n4,1.1,0\n", [1, 4], "my.txt:3 (err 1)"),
        ("size_bytes,latency_us,rc\n1,1,0\n2,9,137\n4,1.1,0\n", [1, 4], "my.txt:3 (rc 137)"),
        ("size_bytes,latency_us,ret\n1,1,0\n2,9,-1\n4,1.1,0\n", [1, 4], "my.txt:3 (ret -1)"),
        ("size_bytes,latency_us,timed_out\n1,1,False\n2,9,True\n4,1.1,False\n", [1, 4], "my.txt:3 (timed_out True)"),
        ("size_bytes,latency_us,discard\n1,1,\n2,9,1\n4,1.1,\n", [1, 4], "my.txt:3 (discard 1)"),
        ("size_bytes,latency_us,correct\n1,1,true\n2,9,false\n4,1.1,true\n", [1, 4], "my.txt:3 (correct false)"),
        ("size_bytes,latency_us,result\n1,1,PASS\n2,9,FAIL\n4,1.1,PASS\n", [1, 4], "my.txt:3 (result FAIL)"),
        ("size_bytes,latency_us,comment\n1,1,no error\n2,9,invalid run\n4,1.1,\n", [1, 4], "(comment invalid run)"),
        ("size_bytes,latency_us,state\n1,1,COMPLETED\n2,9,FAILED\n4,1.1,COMPLETED\n", [1, 4], "(state FAILED)"),
        (
            '[{"size_bytes": 1, "latency_us": 1, "isValid": true}, {"size_bytes": 2, "latency_us": 9, "isValid": false}'
            ', {"size_bytes": 4, "latency_us": 1.1, "isValid": true}]',
            [1, 4],
            "points[1]: isValid false",
        ),
        (
            '{"size_bytes": [1, 2, 4], "latency_us": [1, 9, 1.1], "error_occurred": [false, true, false]}',
            [1, 4],
            "points[1]: error_occurred true",
        ),
    ],
)
def test_rows_that_a_file_marks_as_invalid_are_left_out_with_a_note(content, kept, note):
    measurement = parse("my.txt", content.encode(), test="pingpong")
    assert measurement.sizes_bytes.tolist() == kept
    assert note in measurement.notes[0]


@pytest.mark.parametrize(
    "cell", ["12", "no errors", "0 failed", "without a timeout", "errors: none", "goodness", "unfailing", "-"]
)
def test_words_that_tell_of_no_failure_leave_a_row_in(cell):
    assert len(csv(f"size_bytes,latency_us,comment\n1,1,{cell}\n2,2,\n")) == 2


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (
            IMB_HEADER + "1 10 1.05 0.95 1.0\n2 10 1.06 1.9 2.0\n4 10 1.06 1.9 0\n",
            "2 of 3 rows of PingPong-2 are marked",
        ),
        (osu("1 1.0 Fail\n2 1.1 Fail\n"), "2 of 2 rows of osu_latency are marked as invalid, the first my.txt:3"),
        (osu("1 1.0 Pass\n2 1.1 1.2\n"), 'my.txt:4: "1.2": expected "Pass" or "Fail" in the column Validation'),
        (IMB_HEADER + "1 10 1.05 0.95 x\n", 'my.txt:4: "x": expected defects'),
        ("size_bytes,latency_us,valid\n1,1,maybe\n", 'my.txt:2: "maybe": expected a mark in the column "valid"'),
        ("size_bytes,latency_us,error\n1,1,0.05\n", 'an uncertainty is named "error_us"'),
        ('{"test": "pingpong", "valid": false, "points": [{"size_bytes": 1, "time_us": 1}]}', "with valid false"),
        ('{"test": "pingpong", "error": "timeout", "points": [{"size_bytes": 1, "time_us": 1}]}', "with error timeout"),
        ('{"test": "pingpong", "completed": false, "points": [{"size_bytes": 1, "time_us": 1}]}', "completed false"),
        ('{"test": "pingpong", "outcome": "aborted", "points": [{"size_bytes": 1, "time_us": 1}]}', "outcome aborted"),
        (
            '{"test": "pingpong", "errors": ["lost"], "points": [{"size_bytes": 1, "time_us": 1}]}',
            'in the column "errors"',
        ),
        ('{"test": "pingpong", "points": [{"size_bytes": 1, "time_us": 1, "disturbed": true}]}', "1 of 1 rows"),
        ('{"meta": {"valid": false}, "points": [{"size_bytes": 1, "latency_us": 1}]}', "with meta.valid false"),
        ('{"runs": [{"status": {"code": 3}}], "points": [{"size_bytes": 1, "latency_us": 1}]}', "status.code 3"),
        ('{"valid": false, "sweeps": [{"points": [{"size_bytes": 1, "latency_us": 1}]}]}', "with valid false"),
        (IMB_HEADER + "1 10 1.05 0.95 0\n" + osu("1 1.0 Pass\n2 1.1 Pass\n"), "output of OSU and IMB"),
        (IMB_HEADER + "1 10 1 1 0\n" + IMB_HEADER + "1 10 2 1 0\n", "2 tables: expected --section"),
    ],
)
def test_measurements_that_are_invalid_as_a_whole_are_refused(content, named):
    assert named in refused(content)


@pytest.mark.parametrize(
    ("content", "note"),
    [
        (osu("1 1.0 Pass\n2 1.1 Pass"), "the output ends within line 4: its last row may be cut off"),
        (IMB_HEADER + "1 10 1.05 0.95 0\n2 10 1.06 1.9 0\n", "does not end with IMB's line \"# All processes entering"),
        (osu("1 1.0 Pass\nslurmstepd: error: *** STEP CANCELLED ***\n2 1.1 Pass\n"), "my.txt:4 tells of a failure"),
        (
            PERFTEST_HEADER + " 2 1000 1.5 1.6\nConflicting CPU frequency values detected: 800 != 3500.\n",
            "my.txt:4 tells of a failure, the rows may be wrong",
        ),
        ("size_bytes,latency_us\n1,1\n2,50\n4,51\n", "my.txt:3: 50 us for 2 bytes after 1 us for 1: a disturbed"),
    ],
)
def test_doubtful_measurements_are_noted(content, note):
    assert any(note in one for one in parse("my.txt", content.encode(), test="pingpong").notes)


ROWS_APART = "size_bytes,latency_us,{}\n1,1.000,{}\n2,2.000,{}\n4,4.000,{}\n8,8.000,{}\n"


@pytest.mark.parametrize(
    ("content", "notes"),
    [
        (
            ROWS_APART.format("validiert", "ja", "ja", "nein", "ja"),
            [
                "my.csv:4 has nein in validiert, most rows have ja: this row may be invalid, but is fitted",
                "validiert; if it",
            ],
        ),
        (ROWS_APART.format("retransmissions", 0, 7, "0.0", 0), ["my.csv:3 has 7 in retransmissions, most rows have 0"]),
        (ROWS_APART.format("有效", 1, 1, 0, 1), ["my.csv:4 has 0 in 有效, most rows have 1"]),
        (ROWS_APART.format("verdict", "OK", "OK", "", "OK"), ["my.csv:4 has nothing in verdict, most rows have OK"]),
        (
            ROWS_APART.format("", 0, 0, 5, 0),
            ["my.csv:4 has 5 in", "my.csv: column not read: one without a name; if it"],
        ),
        (
            ROWS_APART.format("host,x", "a,0", "b,1", "c,2", "d,3"),
            ["my.csv: columns not read: host, x; if one of them"],
        ),
        ("# run aborted\nsize_bytes,latency_us\n1,1\n2,2\n", ["my.csv:1 tells of a failure"]),
        (
            '{"host": {"name": "a"}, "points": [{"size_bytes": 1, "latency_us": 1, "c": {"k": true}}, '
            '{"size_bytes": 2, "latency_us": 2, "c": {"k": false}}, '
            '{"size_bytes": 4, "latency_us": 4, "c": {"k": true}}]}',
            [
                "my.csv: points[1] has false in c.k, most rows have true",
                "my.csv: fields not read: c.k, host.name; if one",
            ],
        ),
    ],
)
def test_columns_that_are_not_read_are_named_with_the_rows_that_they_set_apart(content, notes):
    found = csv(content).notes
    for note in notes:
        assert any(note in one for one in found), found


@pytest.mark.parametrize("name", ["iterations", "stddev_us", "p99 (us)", "result", "min_us", "Date"])
def test_columns_that_are_known_as_harmless_give_no_note(name):
    assert csv(ROWS_APART.format(name, "OK", "OK", "OK", "OK")).notes == ()


def test_settings_and_states_of_other_things_do_not_refuse_a_measurement():
    text = (
        '{"options": {"validation": false}, "host": {"status": "up"}, "points": [{"size_bytes": 1, "latency_us": 1}]}'
    )
    assert len(csv(text)) == 1


def test_notes_show_no_control_characters_of_the_file():
    (apart, named) = csv(ROWS_APART.format("a\x1b[2Jb", 0, 0, 1, 0)).notes
    assert "a\\x1b[2Jb" in apart
    assert "a\\x1b[2Jb" in named


@pytest.mark.parametrize("banner", ["[node07:1234] WARNING: no device", "[0] MPI startup(): tcp", "[1,0]<stderr>: [x]"])
def test_the_banner_of_a_launcher_is_no_json(tmp_path, banner):
    rows = "".join(f"{size:<12}{1 + size / 100:.2f}\n" for size in (1, 2, 4, 8, 16))
    file = tmp_path / "osu.txt"
    file.write_text(f"{banner}\n# OSU MPI Latency Test v7.4\n# Size          Latency (us)\n{rows}")
    assert read(file).sizes_bytes.tolist() == [1, 2, 4, 8, 16]
