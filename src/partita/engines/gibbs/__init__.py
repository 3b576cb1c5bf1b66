"""Collapsed Gibbs chains for conjugate families: sweeps, split-merge moves, starts, checkpoints, outliers."""
