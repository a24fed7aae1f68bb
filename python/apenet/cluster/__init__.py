"""Several jobs on one simulated machine: one network, one virtual clock, and what they cost each other.

apenet.cluster.run([apenet.cluster.Job("left", "halo.goal", partition="4x4x4"), ...], machine="ape128")
"""

from apenet.cluster.jobs import ClusterResult, Job, JobResult, run
from apenet.cluster.jobs_file import run_file

__all__ = ["ClusterResult", "Job", "JobResult", "run", "run_file"]
