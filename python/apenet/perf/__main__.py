"""One benchmark in this process: `python -m apenet.perf NAME REPEAT SETTING...`. `apenet perf` starts it."""

import json
import sys

from apenet.perf import run_here

name, repeat, *settings = sys.argv[1:]
sys.stdout.write(json.dumps(run_here(name, int(repeat), settings)) + "\n")
