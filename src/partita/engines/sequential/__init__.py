"""Engines that add one object at a time: beam search and the particle filter."""
