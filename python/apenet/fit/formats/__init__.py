"""Readers for the output of benchmarks, one module per suite. They turn lines into sections and do nothing else."""
