"""Ensembles: many clusterings of the same objects, as a label matrix (objects x members, -1 missing).

`generate` makes them from a table, in any combination of algorithms, numbers of clusters, columns and rows; the named
functions are the combinations that the literature uses. `describe` measures how much the members agree,
`select_members` and `medoid_member` choose among them.
"""

from partita.ensembles.agreement import (
    Description,
    agreement_with,
    describe,
    medoid_member,
    pairwise_agreement,
    select_members,
)
from partita.ensembles.features import Features, Scaling, learn_scaling, read_features, scaled
from partita.ensembles.generating import (
    Member,
    MemberProgress,
    Recipe,
    fit_members,
    generate,
    member_from_state,
    member_state,
)
from partita.ensembles.named import (
    bootstrap_ensemble,
    kmeans_ensemble,
    mixed_ensemble,
    projection_ensemble,
    subspace_ensemble,
)
from partita.ensembles.noise import add_label_noise, noisy_copies

__all__ = [
    "Description",
    "Features",
    "Member",
    "MemberProgress",
    "Recipe",
    "Scaling",
    "add_label_noise",
    "agreement_with",
    "bootstrap_ensemble",
    "describe",
    "fit_members",
    "generate",
    "kmeans_ensemble",
    "learn_scaling",
    "medoid_member",
    "member_from_state",
    "member_state",
    "mixed_ensemble",
    "noisy_copies",
    "pairwise_agreement",
    "projection_ensemble",
    "read_features",
    "scaled",
    "select_members",
    "subspace_ensemble",
]
