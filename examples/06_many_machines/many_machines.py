"""Runs one MPI program, the same binary, on machines of five families and shows where its time goes."""

import argparse
import re

import apenet

MACHINES = ("ape16", "quong", "extoll-64", "qpace", "pax", "my-cluster", "torus-slice")
TIMES = re.compile(r"residual (\S+); an iteration takes (\S+) us: faces (\S+), sums (\S+)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", help="cg.c, compiled with mpicc")
    program = parser.parse_args().program
    print(f"{'machine':12}{'iteration':>14}{'faces':>12}{'sums':>12}   residual")
    for name in MACHINES:
        result = apenet.run([program], n=16, machine=name, capture=True)
        found = TIMES.search((result.stdout or b"").decode())
        assert found, f"{name}: the program printed no times"
        residual, iteration, faces, sums = found.groups()
        print(f"{name:12}{iteration:>11} us{faces:>9} us{sums:>9} us   {residual}")


if __name__ == "__main__":
    main()
