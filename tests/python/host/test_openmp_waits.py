"""How long OpenMP's threads spin: only as long as they have cores of their own, and as the user says if he does."""

import os

import pytest

import apenet

SHOWS = ["sh", "-c", "echo $GOMP_SPINCOUNT,$KMP_BLOCKTIME,$OMP_WAIT_POLICY"]


@pytest.mark.parametrize(
    ("environment", "pin", "shown"),
    [
        ({}, None, "001000,000,"),
        ({}, False, "300000,200,"),
        ({"OMP_NUM_THREADS": "1025,2"}, False, "001000,000,"),
        ({"OMP_WAIT_POLICY": "active"}, None, ",,active"),
        ({"GOMP_SPINCOUNT": "7"}, None, "7,,"),
    ],
)
def test_spins(monkeypatch, environment, pin, shown):
    for name in ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert os.cpu_count() < 1025
    assert apenet.run(SHOWS, n=1, machine="ape16", pin=pin, capture=True).stdout == f"{shown}\n".encode()
