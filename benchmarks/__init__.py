"""Benchmarks: each compares or measures side by side in one run, every measurement in a process of its own."""
