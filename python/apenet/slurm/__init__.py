"""A simulated machine under Slurm: its own daemons on this host, one slurmd for each node, and jobs on the nodes."""
