"""Engines: algorithms of inference, each with `init` and `step` over a NamedTuple state; `run` has the loops."""
