"""Would means with a prior of their own find other groups than means whose prior is measured in the cluster's width?

`Mixture` draws the mean of a cluster from N(m, Sigma_k / kappa), with m and kappa held. The alternative draws it from
N(0, b I) with b learned, whatever the width of the cluster (semi-conjugate means). Its evidence has no closed form, but
a Student density is a mixture of normal ones over a gamma variable, so that one integral over this variable remains,
which is computed by quadrature. The benchmark compares the log evidence of the classes of labelled tables with that of
the groups that the default finds, under both priors with their hyper-parameters at the optimum: if the other prior
preferred the classes, it would be worth a sampler of its own.
"""

from __future__ import annotations

from typing import Any

from benchmarks.processes import in_own_process

SMALL = ("iris", "seeds")
TABLES = ("iris", "wine", "seeds", "glass", "ecoli", "breast_cancer", "pendigits", "control_chart")
N_NODES = 60


def run(*, full: bool, repeats: int) -> dict:
    found = {}
    for name in TABLES if full else SMALL:
        try:
            found[name] = in_own_process(compare, name=name)
        except RuntimeError as error:
            if "PARTITA_DATA" not in str(error):
                raise
            print(f"   {name}: skipped, its data are not here", flush=True)
            continue
        one = found[name]
        print(
            f"   {name}: ARI {one['ari']:.2f}, {one['n_clusters']} groups for {one['n_classes']} classes; log "
            f"evidence of the classes minus that of the groups {one['own_width']:+.1f}, with means of their own prior "
            f"{one['semi_conjugate']:+.1f}",
            flush=True,
        )
    return {"summary": found}


# ---- in a process of its own -----------------------------------------------------------------------------------


def compare(name: str) -> dict:
    """Log evidence of classes minus that of the default's groups under both priors."""
    import warnings

    import numpy as np

    from benchmarks.quality.labeled_tables import load_table
    from partita import Mixture
    from partita.families import GaussianFull
    from partita.fitting.families import assemble, plan_families
    from partita.metrics import adjusted_rand
    from partita.table import read_table

    warnings.simplefilter("ignore")
    table = load_table(name)
    model = Mixture(random_state=0).fit(table.frame)
    blocks = assemble(read_table(table.frame), plan_families("auto", None), finds_steps=True)
    X = next(block.data for block in blocks if isinstance(block.family, GaussianFull))
    classes = np.unique(table.classes, return_inverse=True)[1]
    partitions = [[moments_of(X[z == k]) for k in range(z.max() + 1)] for z in (classes, model.labels_)]
    out: dict[str, Any] = {
        "n_classes": int(classes.max()) + 1,
        "n_clusters": model.n_clusters_,
        "ari": round(float(adjusted_rand(classes, model.labels_)), 4),
    }
    for prior, evidence in (("own_width", log_evidence_own_width), ("semi_conjugate", log_evidence_semi)):
        ours, theirs = (optimum(clusters, X.shape[1], evidence) for clusters in partitions)
        out[prior] = round(ours - theirs, 2)
    return out


def moments_of(X):
    """Size, mean and scatter of a cluster."""
    center = X.mean(axis=0)
    return len(X), center, (X - center).T @ (X - center)


def optimum(clusters, p: int, evidence) -> float:
    """The largest log evidence over degrees of freedom, size of the scale matrix, and spread of the means."""
    import numpy as np
    from scipy.optimize import minimize

    def loss(theta) -> float:
        nu = p - 1.0 + np.exp(theta[0])
        Psi = np.eye(p) * np.exp(theta[1]) * (nu - p + 1.0)
        away = (theta - start) / 1.5
        return -(sum(evidence(*one, nu, Psi, np.exp(theta[2])) for one in clusters) - 0.5 * away @ away)

    start = np.log([3.0, 0.2 / 3.0, 1.0])
    return -float(minimize(loss, start, method="Nelder-Mead", options={"maxiter": 400, "fatol": 0.01}).fun)


def log_evidence_own_width(n, center, scatter, nu, Psi, spread, kappa=0.1) -> float:
    """Of one cluster with a normal-inverse-Wishart prior around 0; ``spread`` is not used."""
    import numpy as np
    from scipy.special import multigammaln

    p, kappa_n = len(center), kappa + n
    P = Psi + scatter + kappa * n / kappa_n * np.outer(center, center)
    out = multigammaln((nu + n) / 2, p) - multigammaln(nu / 2, p)
    out += 0.5 * nu * np.linalg.slogdet(Psi)[1] - 0.5 * (nu + n) * np.linalg.slogdet(P)[1]
    return float(out + 0.5 * p * np.log(kappa / kappa_n) - 0.5 * n * p * np.log(np.pi))


def log_evidence_semi(n, center, scatter, nu, Psi, spread) -> float:
    """Of one cluster whose mean is N(0, spread I): with the mean given, its covariance is integrated out, which leaves
    ``(1 + n d' A^-1 d)^(-a)`` for a mean at distance d from the center, a gamma mixture of normal densities of d.
    """
    import numpy as np
    from scipy.special import gammaln, logsumexp, multigammaln

    p, a = len(center), 0.5 * (nu + n)
    values, vectors = np.linalg.eigh(Psi + scatter)
    log_det = np.log(values).sum()
    out = multigammaln(a, p) - multigammaln(nu / 2, p) + 0.5 * nu * np.linalg.slogdet(Psi)[1] - a * log_det
    t, w = np.polynomial.legendre.leggauss(N_NODES)
    low, high = np.log(max(a - 8 * np.sqrt(a), 1e-8)), np.log(a + 10 * np.sqrt(a) + 10)
    log_v = low + 0.5 * (high - low) * (t + 1)
    v = np.exp(log_v)[:, None]
    variances = spread + values / (2 * v * n)
    log_normal = -0.5 * ((vectors.T @ center) ** 2 / variances + np.log(variances)).sum(axis=1)
    terms = a * log_v - np.exp(log_v) + log_normal + 0.5 * (log_det - p * np.log(2 * np.exp(log_v) * n))
    log_integral = logsumexp(terms + np.log(w) + np.log(0.5 * (high - low)))
    return float(out - 0.5 * n * p * np.log(np.pi) - gammaln(a) + log_integral)
