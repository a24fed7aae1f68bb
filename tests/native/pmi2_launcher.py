"""A launcher that speaks PMI-2 alone: pmi2_launcher.py RANKS COMMAND... Answers version 1 as servers of PMI-2 do that
do not speak it, and a wrong command with its own text; exits with the first status that is not 0."""

import os
import socket
import subprocess
import sys
import threading


class Run:
    """What the ranks share."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.values: dict[str, str] = {}
        self.new_values: dict[str, str] = {}
        self.barrier = threading.Barrier(size, action=self.publish)

    def publish(self) -> None:
        """A value can be read after the fence that follows it, not before."""
        self.values.update(self.new_values)

    def answer(self, rank: int, command: str, fields: dict[str, str]) -> str:
        if command == "fullinit":
            right = fields.get("pmirank") == str(rank) and fields.get("pmijobid") == "7" and "threaded" in fields
            return f"rc={0 if right else 1};rank={rank};size={self.size};appnum=0;"
        if command == "job-getid":
            return "rc=0;jobid=job 7;"
        if command == "kvs-put":
            self.new_values[fields["key"]] = fields["value"]
        elif command == "kvs-fence":
            self.barrier.wait()
        elif command == "kvs-get":
            value = self.values.get(fields["key"])
            known = fields.get("jobid") == "job 7" and value is not None
            return f"rc=0;found=TRUE;value={value};" if known else "rc=0;found=FALSE;"
        elif command != "finalize":
            return "rc=14;errmsg=unknown command;"
        return "rc=0;"


def serve(run: Run, rank: int, end: socket.socket) -> None:
    stream = end.makefile("rwb")
    for version in ("1", "2"):
        line = stream.readline().decode()
        assert line == f"cmd=init pmi_version={version} pmi_subversion={2 - int(version)}\n", line
        status = 0 if version == "2" else -1
        stream.write(f"cmd=response_to_init rc={status} pmi_version=2 pmi_subversion=0\n".encode())
        stream.flush()
    while length := stream.read(6):
        text = stream.read(int(length)).decode()
        assert text.endswith(";"), text
        command, *fields = text[:-1].split(";")
        name = command.removeprefix("cmd=")
        body = run.answer(rank, name, dict(field.split("=", 1) for field in fields))
        reply = f"cmd={name}-response;{body}".encode()
        stream.write(b"%6d" % len(reply))
        # In two pieces: a client must not take what has come for the whole.
        stream.write(reply[:10])
        stream.flush()
        stream.write(reply[10:])
        stream.flush()


def main() -> int:
    size, command = int(sys.argv[1]), sys.argv[2:]
    run = Run(size)
    processes = []
    for rank in range(size):
        ours, theirs = socket.socketpair()
        theirs.set_inheritable(True)
        variables = {"PMI_FD": str(theirs.fileno()), "PMI_RANK": str(rank), "PMI_SIZE": str(size), "PMI_JOBID": "7"}
        processes.append(subprocess.Popen(command, env={**os.environ, **variables}, pass_fds=[theirs.fileno()]))
        theirs.close()
        threading.Thread(target=serve, args=(run, rank, ours), daemon=True).start()
    return max(abs(process.wait()) for process in processes)


if __name__ == "__main__":
    sys.exit(main())
