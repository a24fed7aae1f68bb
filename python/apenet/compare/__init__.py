"""Compares runs: with values that were accepted before, and with each other."""
