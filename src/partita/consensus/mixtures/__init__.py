"""Consensus by mixtures of label vectors: Topchy's mixture model and NBCE."""
