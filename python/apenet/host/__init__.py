"""The host of a run: finds what is installed, starts the ranks, and routes their output."""
