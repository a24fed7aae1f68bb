"""Types of the C++ core, as python/bindings exposes them."""

__version__: str
