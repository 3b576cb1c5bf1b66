"""Engines: how a model is searched. Each is `init` and `step` over a NamedTuple state; `run` owns the loops."""
