"""Simulations of a real program, a trace, a workload in Python, or synthetic traffic, and their results."""
