"""One benchmark in this process: `python -m apenet.perf NAME REPEAT SETTING...`. Started by `apenet perf`."""

import json
import os
import sys

from apenet.host import parent
from apenet.perf import run_here

parent.end_with(os.getppid())
name, repeat, *settings = sys.argv[1:]
sys.stdout.write(json.dumps(run_here(name, int(repeat), settings)) + "\n")
