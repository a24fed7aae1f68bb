"""A network that jobs share while they run: its simulator, and the steps of jobs, which join it from other processes.

The simulator (`apenet.live.simulator`) has the machine and its virtual time. A step (`apenet.live.step`) starts its
ranks itself, so that they have its folder, environment, limits and signals, and gives the simulator their descriptors.
"""
