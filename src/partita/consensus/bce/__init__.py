"""Bayesian cluster ensembles: an admixture with a membership vector per object and a latent cluster per label."""
