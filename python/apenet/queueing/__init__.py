"""Scheduling studies: what the placement of jobs costs them in waiting time, lost nodes and shared links."""

from apenet.queueing.study import PolicyResult, QueueResult, simulate

__all__ = ["PolicyResult", "QueueResult", "simulate"]
