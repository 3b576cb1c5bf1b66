"""How well found views agree with known groupings: NMI by the geometric mean, as in the tables of NBMC-OFV."""

from __future__ import annotations

from functools import partial

import numpy as np

from partita.metrics import match_labelings, normalized_mutual_info

NMI_AVERAGE = "geometric"
nmi = partial(normalized_mutual_info, average=NMI_AVERAGE)


def matched_nmi(known, found: np.ndarray) -> np.ndarray:
    """The NMI of each known labeling with the view that is matched to it, one to one; 0 for one without a view.

    Parameters
    ----------
    known : sequence of labelings, or matrix (rows x labelings)
    found : ndarray (n_rows, n_views)
        There may be no view.
    """
    known = list(np.asarray(known).T) if isinstance(known, np.ndarray) else list(known)
    got = np.zeros(len(known))
    if found.shape[1]:
        match = match_labelings(known, found, score=nmi)
        got[match.pairs[:, 0]] = match.scores[match.pairs[:, 0], match.pairs[:, 1]]
    return got
