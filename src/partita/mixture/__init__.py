"""Mixtures: which groups are there, and how many?"""

from partita.mixture.latent_class import LatentClass
from partita.mixture.model import Mixture

__all__ = ["LatentClass", "Mixture"]
