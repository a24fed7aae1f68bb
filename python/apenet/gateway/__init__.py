"""The nodes of a machine as network namespaces of this host, joined by the simulated network in real time."""
