import json
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import processes, record
from benchmarks.speed import em_latent_class

ROOT = Path(__file__).resolve().parents[2]


def test_a_measurement_runs_in_a_process_of_its_own(tmp_path):
    path = str(tmp_path / "table.npy")
    result = processes.in_own_process(
        em_latent_class.make_table, path=path, n_rows=50, n_columns=3, n_levels=4, n_clusters=2
    )
    import numpy as np

    X = np.load(path)
    assert X.shape == (50, 3) and X.dtype == np.int8 and X.min() >= 0 and X.max() <= 3
    assert result["peak_mb"] > 10


def test_a_failure_in_the_process_is_reported():
    with pytest.raises(RuntimeError, match="make_table"):
        processes.in_own_process(
            em_latent_class.make_table, path="/nowhere/x", n_rows=0, n_columns=0, n_levels=1, n_clusters=1
        )


def test_the_time_of_an_iteration_is_a_difference():
    def fit(seconds, n):
        return {
            "wall_s": seconds,
            "cpu_s": seconds,
            "n_iter": n,
            "peak_mb": 1,
            "before_mb": 1,
            "log_likelihood_per_row": 0,
        }

    assert em_latent_class._difference(fit(2.0, 5), fit(5.0, 15))["wall_s_per_iteration"] == pytest.approx(
        0.3
    )
    with pytest.raises(RuntimeError, match="asked for 5 and 15 iterations, got 5 and 9"):
        em_latent_class._difference(fit(2.0, 5), fit(5.0, 9))


def test_the_exponent_is_the_slope_of_the_logarithms():
    assert record.slope([(10, 3e-4), (100, 3e-3), (1000, 3e-2)]) == pytest.approx(1.0)


def test_spread_is_median_and_range():
    assert record.spread([3.0, 1.0, 2.0]) == {"median": 2.0, "min": 1.0, "max": 3.0}


def test_kept_results_say_how_they_were_made():
    kept = sorted((ROOT / "benchmarks" / "results").glob("*.json"))
    assert {path.stem for path in kept} == set(command.BENCHMARKS) - command.NOT_KEPT
    for path in kept:
        result = json.loads(path.read_text(encoding="utf-8"))
        assert result["command"] == f"python -m benchmarks {path.stem} --full"
        assert {"machine", "versions", "commit", "date", "summary"} <= set(result)


def test_an_unknown_benchmark_is_refused(capsys):
    with pytest.raises(SystemExit):
        command.main(["nothing"])
    assert "em_latent_class" in capsys.readouterr().err


def test_calibration_error_is_the_gap_of_each_bin():
    import numpy as np

    from benchmarks.quality.consensus_grain import calibration_error

    p = np.array([0.05, 0.05, 0.95, 0.95])
    assert calibration_error(p, np.array([0, 0, 1, 1])) == pytest.approx(0.05)
    assert calibration_error(p, np.array([1, 1, 0, 0])) == pytest.approx(0.95)


def test_bars_of_consensus_are_those_of_the_table():
    from benchmarks.quality import consensus_tables as tables

    probabilities = {"brier": 0.1, "ece": 0.1, "confidence_auroc": 0.8, "confidence_ece": 0.1}
    former = {
        f"{key}_before": value + 0.01 * (key != "confidence_auroc") for key, value in probabilities.items()
    }

    def scores(ari):
        return {"a": [{"ari": ari, "nmi": ari, "off": 0, "cpu_s": 1.0, **probabilities, **former}]}

    members = {"a": [{"best": 0.9, "mean": 0.2, "brier": 0.1}]}
    ours = {"Consensus": 0.5, "Consensus told K": 0.6, "EAC told K": 0.55, "LACA": 0.4, "NBCE": 0.6}
    sets = {}
    for n, shift in enumerate((0.0, 0.1, 0.3)):
        runs = {name: scores(ari + shift * (name == "EAC told K")) for name, ari in ours.items()}
        sets[f"set {n}"] = {"runs": {"members": members, **runs}}
    found = tables.summarize(sets, ("a",))
    assert found["ranks"]["NBCE"] == 1.0 and found["ranks"]["LACA"] == 3.0
    assert found["methods"]["LACA"]["behind"] == {"mean": 0.1, "se": 0.0, "wins": 3, "losses": 0}
    bars = tables.bars_of(found, ("a",), ["Consensus told K", "EAC told K"], 0.006)
    assert found["probabilities"]["brier"]["difference"]["mean"] == pytest.approx(-0.01)
    assert bars["Brier score lower than before by at least 0.006"]
    assert bars["confidence ranks objects as before (one paired standard error)"]
    assert bars["ahead of LACA on average"] and not bars["ahead of NBCE on every kind"]
    assert not bars["level with EAC with K given on average (one paired standard error)"]
    assert bars["K given: level with the best method (EAC, K given)"]  # 0.083 behind, and 0.088 the error
    assert bars["Brier score within 0.005 of plain co-association"]


def test_labeled_ensembles_are_made_once(tmp_path):
    import numpy as np

    from benchmarks.quality.labeled_ensembles import HELD_OUT, TUNED_ON, ensemble, labeled_set

    assert len(TUNED_ON) >= 14 and len(HELD_OUT) >= 4 and not set(TUNED_ON) & set(HELD_OUT)
    data = labeled_set("wine")
    assert data.n_classes == 3 and np.allclose(data.X.std(axis=0), 1.0)
    Y = ensemble("wine", "c", 0, str(tmp_path))
    assert Y.shape == (178, 30) and abs((Y < 0).mean() - 0.37) < 0.03
    (path,) = tmp_path.iterdir()
    np.save(path, Y[:, :2])
    assert ensemble("wine", "c", 0, str(tmp_path)).shape == (178, 2)
