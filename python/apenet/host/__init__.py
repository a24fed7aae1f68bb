"""The host of a run: what is installed, how ranks are started there, and where their output goes."""
