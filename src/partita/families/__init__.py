"""Families: likelihoods of one column in one cluster. All formulas of likelihoods are in this package."""

from partita.families import gaussian_full_arrays
from partita.families.backgrounds import Background, background, log_background
from partita.families.bernoulli import Bernoulli
from partita.families.categorical import Categorical
from partita.families.codings import Lumps, Power, Values
from partita.families.data import join, n_rows, put_rows, take, take_block
from partita.families.exponential import Exponential
from partita.families.factors import find_signal, is_wide, signal_of
from partita.families.gaussian import GaussianDiagonal
from partita.families.gaussian_full import GaussianFull
from partita.families.multinomial import CountVectors, Multinomial
from partita.families.ordinal import Levels, Ordinal
from partita.families.poisson import Counts, Poisson
from partita.families.registry import (
    FAMILIES,
    NON_CONJUGATE,
    Block,
    Entry,
    entry_of,
    family_entry,
    register_family,
)
from partita.families.signal import Signal
from partita.families.student import Student
from partita.families.ties import Ties
from partita.families.von_mises_fisher import VonMisesFisher

__all__ = [
    "FAMILIES",
    "NON_CONJUGATE",
    "Background",
    "Bernoulli",
    "Block",
    "Categorical",
    "CountVectors",
    "Counts",
    "Entry",
    "Exponential",
    "GaussianDiagonal",
    "GaussianFull",
    "Levels",
    "Lumps",
    "Multinomial",
    "Ordinal",
    "Poisson",
    "Power",
    "Signal",
    "Student",
    "Ties",
    "Values",
    "VonMisesFisher",
    "background",
    "entry_of",
    "family_entry",
    "find_signal",
    "is_wide",
    "join",
    "log_background",
    "n_rows",
    "put_rows",
    "register_family",
    "signal_of",
    "take",
    "take_block",
]
