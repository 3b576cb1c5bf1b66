"""Mixtures: which groups are there, and how many?"""

from partita.mixture.estimator import Mixture
from partita.mixture.latent_class import LatentClass
from partita.mixture.presets import DPGaussian, DPMultinomial

__all__ = ["DPGaussian", "DPMultinomial", "LatentClass", "Mixture"]
