"""The simulator of a shared network, and steps as jobs of a batch system start them, without one."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import live_steps
import pytest

import apenet
from apenet.live import records, starting
from apenet.slurm import daemons

STEP = """
import sys
from pathlib import Path
import apenet
from apenet.live import step
sys.exit(step.run(
    Path({folder!r}), apenet.machine({folder!r} + "/machine.toml"), job={job!r}, partition="", nodes={nodes!r},
    ranks_per_node=1, command={command!r}, say=lambda text: print(text, file=sys.stderr),
))
"""


class Network:
    """A cluster with a shared network, in a folder, of which only the simulator runs."""

    def __init__(self, folder: Path, machine: str) -> None:
        self.folder = folder
        chosen = apenet.machine(machine)
        folder.mkdir()
        for name, content in chosen.saved().items():
            (folder / name).write_bytes(content)
        state = {
            "folder": str(folder),
            "machine": chosen.name,
            "nodes": [chosen.description().node_name(node) for node in range(chosen.node_count)],
            "ranks_per_node": 1,
            "machine_names": list(chosen.saved()),
            "shares_network": True,
        }
        (folder / "cluster.json").write_text(json.dumps(state))
        self.simulator = starting.start_simulator(folder)

    @property
    def cluster(self) -> daemons.Cluster:
        return daemons.opened(self.folder)

    def start(self, job: str, nodes: list[int], *command: object) -> subprocess.Popen[str]:
        """A step; its standard output and error are pipes."""
        words = [str(word) for word in command]
        code = STEP.format(folder=str(self.folder), job=job, nodes=nodes, command=words)
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen([sys.executable, "-c", code], cwd=self.folder.parent, **pipes)

    def record(self, job: str) -> records.StepRecord:
        """What is known of the only step of a job, once it has ended."""
        found = live_steps.until(
            lambda: [one for one in records.read(self.folder) if one.job == job], f"the end of job {job}"
        )
        return found[0]

    def require_no_processes(self) -> None:
        """Waits until none is left whose current folder is that of the steps, or deleted."""

        def has_none() -> bool:
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    if str((process / "cwd").readlink()).startswith(str(self.folder.parent)):
                        return False
                except OSError:
                    continue
            return True

        live_steps.until(has_none, "the end of all processes of the steps")

    def end(self) -> None:
        """Kills the simulator, if it has not been killed before."""
        if self.simulator:
            os.kill(self.simulator, signal.SIGKILL)
            os.waitpid(self.simulator, 0)
        self.simulator = 0


@pytest.fixture
def network(request):
    """A shared network on ape16, or on the machine that the test names."""
    with tempfile.TemporaryDirectory(prefix="apenet-", dir="/tmp") as folder:  # Linux limits the paths of sockets
        made = Network(Path(folder) / "cluster", getattr(request, "param", "ape16"))
        yield made
        made.end()


@pytest.fixture(scope="session")
def chatter(build):
    return build(Path(__file__).with_name("chatter.c"))
