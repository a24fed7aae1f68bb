"""Why a run takes its time: waits by cause, the critical path, and alternatives measured by replays; as one page."""

from apenet.explain.frames import frames
from apenet.explain.report import explain, report

__all__ = ["explain", "frames", "report"]
