"""Traces of other tools, as operations that a replay executes."""
