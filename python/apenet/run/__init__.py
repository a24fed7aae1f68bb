"""Simulations: a real program, a trace, a workload in Python, or synthetic traffic, and what comes out."""
