"""Readers of what benchmarks print: one module a suite. Each turns lines into sections, and decides nothing else."""
