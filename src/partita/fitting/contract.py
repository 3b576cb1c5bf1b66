"""What a mixture is asked for, what an engine is asked for, and what every engine returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.engines.climb.seeding import Objects
from partita.engines.passes.rows import Parameters, Statistics
from partita.engines.run import Control, Run
from partita.fitting.outliers import OutlierModel
from partita.fitting.predictive import PredictiveDraw
from partita.trace import Trace


class Settings(NamedTuple):
    """The parameters of :class:`partita.Mixture` that decide what is fitted, with its defaults."""

    family: Any = "auto"
    prior: Any = "auto"
    inference: str = "auto"
    n_clusters: int | None = None
    max_clusters: int | None = None
    concentration: float | None = None
    learn_hyper: bool = True
    n_chains: int = 4
    n_draws: int | None = None
    burn_in: int | None = None
    thin: int = 1
    precision: str = "auto"
    partition: str = "votes"
    outliers: bool = False
    estimate: str = "map"
    order: int = 1
    beam_width: int = 100
    kinds: Any = None
    missing_codes: Any = None
    exposure: str | None = None
    handle_unknown: str = "missing"
    init: Any = "seeds"
    n_init: int = 3
    max_iter: int = 500
    tol: float = 1e-5
    random_state: Any = None
    resume: Any = None

    @classmethod
    def of(cls, estimator: Any) -> Settings:
        """Those of an estimator; a parameter that it does not have is at its default."""
        return cls(**{name: getattr(estimator, name) for name in cls._fields if hasattr(estimator, name)})


class Request(NamedTuple):
    """What an engine is asked for."""

    n_components: int
    exact: bool  # whether the number of clusters is given; otherwise it is bounded
    prior: Any
    learn_concentration: bool
    learn_likelihood: bool
    maximum_likelihood: bool
    order: int
    init: Any  # "seeds", "random" or labels
    rngs: Sequence[np.random.Generator]
    tol: float
    max_iter: int
    control: Control  # what may end the fit early
    debug: bool
    executor: Any
    folder: Any = None  # where chains store their checkpoints
    n_chains: int = 1
    n_draws: int | None = None  # None: as the settling of the chains asks for
    burn_in: int | None = None  # None: as long as the chains take to agree
    thin: int = 1
    limit: int | None = None  # largest number of clusters of a chain; None: no limit
    precision: str = "auto"  # of the predictive cache
    partition: str = "votes"  # how draws become one partition
    outliers: bool = False  # whether rows may be outliers
    width: int = 100  # of the beam
    stop: str = "objective"  # when EM has converged: "objective" (no increase) or "assignments" (no change)
    objects: Objects | None = None  # where rows stand for several objects: those that seeds are drawn among


class EngineResult(NamedTuple):
    """What every engine returns."""

    families: tuple[Any, ...]
    prior: Any
    statistics: Statistics
    parameters: Parameters | None  # responsibilities are computed from them; None: from the predictive
    log_weights: np.ndarray  # weights of the predictive density
    run: Run
    finals: list[float]
    n_iter: int
    trace: Trace | None = None  # of chains, over objects: a row of weight w is w objects
    provisional: bool = False  # no chain reached its first draw: the trace holds one state of the burn-in
    burn_in: int | None = None  # of chains: iterations before the first draw
    # the iteration after which chains agreed; None: they did not, or were not compared
    agreed_at: int | None = None
    object_rows: np.ndarray | None = None  # the row of each object
    labels: np.ndarray | None = None  # a partition of the rows; None: the most probable cluster of each row
    confidence: np.ndarray | None = None  # in the labels, from the draws
    draws: tuple[PredictiveDraw, ...] = ()  # that densities are averaged over; none: those of the statistics
    outliers: OutlierModel | None = None
    outlier_probability: np.ndarray | None = None  # of each row, NaN for rows of weight 0
