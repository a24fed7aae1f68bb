"""Computation as a profile: recorded once, fitted to the size of the problem, charged in every run."""
