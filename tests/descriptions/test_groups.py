"""Groups in words: what is told is what distinguishes most, and planted groups get the planted names."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from partita import Agglomerative, Consensus, DecorrelatedKMeans, EnsembleClustering, Mixture, load
from partita.datasets import load_visitors
from partita.descriptions import describe_labels, profile_groups
from partita.descriptions.columns import described_column, value_text
from partita.descriptions.groups import MAX_TELLING, TYPICAL
from partita.descriptions.information import (
    information_of_counts,
    information_of_normals,
    information_of_shares,
)
from partita.dispatch import interpreted
from partita.table import ColumnSchema, read_table
from partita.wording import number, percent

NASTY = "<script>alert('x')</script>"


def described(labels, frame, kinds=None):
    table = read_table(frame, kinds)
    labels = np.asarray(labels)
    return describe_labels(labels, profile_groups(labels, table, int(labels.max()) + 1), table.schema.column)


def planted(rng, n=400):
    """Two groups of visits: spend and channel tell them apart, the weather does not."""
    z = np.repeat([0, 1], n // 2)
    return z, pd.DataFrame(
        {
            "weather": rng.normal(size=n),
            "spend": rng.normal(100.0 + 300.0 * (1 - z), 20.0),
            "channel": np.where(rng.random(n) < 0.15 + 0.7 * (1 - z), "web", "shop"),
        }
    )


# ---- rules ---------------------------------------------------------------------------------------------------------


def test_planted_groups_have_the_planted_names(rng):
    z, frame = planted(rng)
    found = described(z, frame)
    # the channel tells about half as much as the spend, so it may be in the name, too
    assert [group.name.split(", ")[0] for group in found.groups] == ["high spend", "low spend"]
    assert [trait.column for trait in found.groups[0].telling] == ["spend", "channel"]


def test_the_sentence_has_the_values_of_the_group_and_of_the_table(rng):
    z, frame = planted(rng)
    sentence = described(z, frame).groups[0].sentence
    here, whole = frame.spend[z == 0].mean(), frame.spend.mean()
    web, of_all = (frame.channel[z == 0] == "web").mean(), (frame.channel == "web").mean()
    assert f"spend {here:.0f} (all: {whole:.0f})" in sentence
    assert f"channel web {web:.0%} ({of_all:.0%})" in sentence or "channel shop" in sentence


def test_telling_columns_are_those_with_the_largest_information(rng):
    z = rng.integers(3, size=600)
    X = rng.normal(size=(600, 9)) + np.outer(z == 0, np.linspace(0.0, 4.0, 9))
    found = described(z, pd.DataFrame(X))
    for k, group in enumerate(found.groups):
        nats = {trait.column: trait.nats for trait in found.traits[k]}
        told = [trait.column for trait in group.telling]
        assert told == sorted(nats, key=lambda name: -nats[name])[: len(told)] and len(told) <= MAX_TELLING
    assert [t.column for t in found.groups[0].telling][:3] == ["8", "7", "6"]


def test_information_equals_its_integral(rng):
    mean, sd, w = np.array([0.0, 1.5]), np.array([1.0, 0.6]), np.array([0.3, 0.7])
    x = np.linspace(-8, 8, 40_001)
    p = np.exp(-0.5 * ((x[:, None] - mean) / sd) ** 2) / sd / np.sqrt(2 * np.pi)
    exact = (p * (np.log(p + 1e-300) - np.log(p @ w + 1e-300)[:, None])).sum(axis=0) * (x[1] - x[0])
    assert information_of_normals(mean, sd, w) == pytest.approx(exact, rel=0.03)
    P = rng.dirichlet(np.ones(4), size=2)
    assert information_of_shares(P, w) == pytest.approx((P * np.log(P / (w @ P))).sum(axis=1))
    assert (information_of_counts(np.array([3.0, 3.0]), w) == pytest.approx(0.0)) and (
        information_of_counts(np.array([3.0, 30.0]), w) > 0.1
    ).all()


def test_names_differ_and_a_group_like_the_whole_is_typical(rng):
    z = rng.integers(6, size=3000)
    frame = pd.DataFrame({"a": rng.normal(size=3000) + 6.0 * (z == 0), "b": rng.normal(size=3000)})
    names = [group.name for group in described(z, frame).groups]
    assert names[0] == "high a" and len(set(names)) == 6
    only_noise = [g.name for g in described(rng.integers(2, size=3000), frame[["b"]]).groups]
    assert only_noise == [TYPICAL, f"{TYPICAL} (2)"]


def test_groups_that_differ_in_values_only_get_values_as_names(rng):
    z = np.repeat(np.arange(5), 100)
    names = [g.name for g in described(z, pd.DataFrame({"size": rng.normal(10.0 * z, 1.0)})).groups]
    assert len(set(names)) == 5 and any(any(c.isdigit() for c in name) for name in names)


def test_a_level_that_is_absent_is_told_with_its_share_elsewhere(rng):
    z = np.repeat([0, 1], 300)
    levels = np.where(rng.random(600) < 0.6, "SKIP", np.where(rng.random(600) < 0.5, "a", "b"))
    levels[z == 0] = np.where(rng.random(300) < 0.5, "a", "b")
    group = described(z, pd.DataFrame({"answer": levels})).groups[0]
    whole = (levels == "SKIP").mean()
    assert f"answer SKIP 0% (all: {whole:.0%})" in group.sentence and group.name == "answer not SKIP"


def test_skewed_columns_have_medians_and_single_values_shares(rng):
    z = np.repeat([0, 1], 500)
    income = np.exp(rng.normal(8.0 + z, 1.0))
    spend = np.where(rng.random(1000) < 0.9 - 0.5 * z, 0.0, np.exp(rng.normal(4.0, 0.5, 1000)))
    found = described(z, pd.DataFrame({"income": income, "spend": spend}))
    told = found.groups[0].sentence
    assert f"income {np.median(income[z == 0]):,.0f} (" in told
    assert f"spend 0 in {(spend[z == 0] == 0).mean():.0%}" in told


def test_ordered_levels_are_told_by_their_medians(rng):
    z = np.repeat([0, 1], 200)
    grades = pd.Categorical.from_codes(
        np.clip(2 * z + rng.integers(3, size=400), 0, 4), ["--", "-", "0", "+", "++"], ordered=True
    )
    first, second = described(z, pd.DataFrame({"mood": grades})).groups
    assert (first.name, second.name) == ("low mood", "high mood") and "mood" in first.sentence


def test_dates_money_and_truth_are_told_as_people_write_them(rng):
    z = np.repeat([0, 1], 100)
    frame = {
        "start": np.datetime64("2024-01-01") + (z * 300 + rng.integers(20, size=200)),
        "price": [f"${x:.2f}" for x in rng.normal(50 + 100 * z, 5)],
        "member": rng.random(200) < 0.1 + 0.8 * z,
    }
    sentence = described(z, pd.DataFrame(frame)).groups[1].sentence
    assert "start 2024-1" in sentence and "price $1" in sentence and "member yes" in sentence


def test_groups_in_the_middle_are_told_with_their_spread(rng):
    z = np.repeat([0, 1, 2], 200)
    price = rng.normal(100.0, np.array([2.0, 30.0, 30.0])[z])
    first = described(z, pd.DataFrame({"price": price})).groups[0]
    here = f"price {number(price[z == 0].mean())} ± {number(price[z == 0].std(), 2)} "
    assert first.name == "medium price" and here in first.sentence


def test_one_row_is_told_by_its_values(rng):
    X = pd.DataFrame({"size": np.append(rng.normal(size=300), 40.0), "other": rng.normal(size=301)})
    z = np.append(np.repeat([0, 1], 150), 2)
    last = described(z, X).groups[2]
    assert last.name.startswith("high size") and "size 40 (" in last.sentence
    X["size"] = rng.normal(size=301)
    few = [group for group in described(z, X).groups if group.size == 1]
    assert "near the whole table" not in few[0].sentence


def test_of_two_levels_the_one_of_the_group_is_told(rng):
    z = np.repeat([0, 1], 200)
    bot = np.where(rng.random(400) < 0.02 + 0.96 * z, "True", "False")
    first, second = described(z, pd.DataFrame({"bot": bot})).groups
    shares = [percent((bot == level)[z == k].mean()) for k, level in enumerate(("False", "True"))]
    assert f"bot False {shares[0]} (" in first.sentence and f"bot True {shares[1]} (" in second.sentence


def test_times_units_and_large_numbers_are_told_as_people_write_them(rng):
    z = np.repeat([0, 1], 100)
    hour = np.where(z == 0, 9, 18)
    frame = {
        "at": [f"{h:02d}:{m:02d}" for h, m in zip(hour, rng.integers(25, 35, 200))],
        "fee": [f"${x:.0f}/mo" for x in rng.normal(90 + 300 * z, 9)],
        "people": rng.normal(2.5e6 + 1e6 * z, 1e5),
    }
    sentence = described(z, pd.DataFrame(frame)).groups[0].sentence
    assert "at 09:" in sentence and "/mo ($" in sentence and "fee $" in sentence
    assert re.search(r"people \d,\d{3},000 \(\d,\d{3},000\)", sentence)


def test_one_group_and_no_columns(rng):
    assert described(np.zeros(9, int), pd.DataFrame({"a": rng.normal(size=9)})).groups[0].name == "all rows"
    found = describe_labels(np.array([0, 1, 0, -1]), {}, None)
    assert [(g.number, g.size, g.name) for g in found.groups] == [(1, 2, "group 1"), (2, 1, "group 2")]


def test_the_order_and_the_numbers_of_groups_do_not_matter(rng):
    z, frame = planted(rng)
    there, back = described(z, frame), described(1 - z, frame)
    assert {g.sentence for g in there.groups} == {g.sentence for g in back.groups}


def test_profiles_equal_those_of_pandas_with_missing_cells_and_weights(rng):
    z = rng.integers(3, size=200)
    x = np.where(rng.random(200) < 0.3, np.nan, rng.normal(1e6, 1.0, 200) + z)
    found = profile_groups(z, read_table(pd.DataFrame({"x": x, "y": rng.random(200)})), 3)["x"]
    by = pd.Series(x).groupby(z)
    assert found["mean"] == pytest.approx(by.mean().to_numpy(), abs=1e-6)
    assert found["sd"] == pytest.approx(by.std(ddof=0).to_numpy(), rel=1e-4)
    assert found["n"].tolist() == by.count().tolist()
    w = rng.integers(1, 4, size=200).astype(float)
    weighted = profile_groups(z, read_table(pd.DataFrame({"x": x})), 3, w)["x"]
    again = pd.Series(np.repeat(x, w.astype(int))).groupby(np.repeat(z, w.astype(int)))
    assert weighted["mean"] == pytest.approx(again.mean().to_numpy(), abs=1e-6)
    assert weighted["sd"] == pytest.approx(again.std(ddof=0).to_numpy(), rel=1e-4)


# ---- models --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def visitors():
    return load_visitors(as_frame="pandas")


GOLDEN = [
    "high photos_taken, ticket full: photos_taken 25.8 (all: 18.2), spend 23.9 ± 6.8 (27.5 ± 15), ticket full "
    "72% (42%), minutes_inside 96.5 (108), rooms_visited 10.8 (9.65), arrival car 6% (23%)",
    "high spend, ticket family: spend 42.9 (all: 27.5), ticket family 75% (24%), photos_taken 16.9 ± 4.5 (18.2 ± 8.2), "
    "minutes_inside 132 (108), arrival car 54% (23%), rooms_visited 7.83 (9.65)",
    "low spend, ticket student: spend 8.85 (all: 27.5), ticket student 84% (22%), photos_taken 11.8 (18.2), "
    "minutes_inside 70.7 (108), rooms_visited 6.66 (9.65), audio_guide yes 4% (33%)",
    "low photos_taken, high rooms_visited: photos_taken 4.96 (all: 18.2), rooms_visited 16.8 (9.65), "
    "minutes_inside 157 (108), member yes 78% (18%), ticket senior 40% (12%), spend 33.1 (27.5)",
]


def test_golden_sentences_of_the_planted_visitors(visitors):
    assert [group.sentence for group in described(visitors.target, visitors.frame).groups] == GOLDEN


def test_every_kind_of_estimator_describes_its_groups(rng, tmp_path):
    z = np.repeat([0, 1], 30)
    X = pd.DataFrame({"size": rng.normal(8.0 * z, 1.0), "noise": rng.normal(size=60)})
    with interpreted(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = [
            Mixture("gaussian", inference="em", n_clusters=2, random_state=0).fit(X),
            Agglomerative(n_clusters=2, linkage="ward").fit(X),
            EnsembleClustering(n_clusters=2, n_members=20, random_state=0).fit(X),
        ]
    for model in models:
        assert {name.split(" ")[0] for name in model.summary_.names} <= {"high", "low"}
        assert "size" in model.summary_.sentences[0] and sum(model.summary_.sizes) == 60
        table = model.profile_table()
        assert table.columns.tolist() == ["column", "kind", "statistic", "all", "group 1", "group 2"]
        assert table.column[0] == "size" and table["all"][0] == pytest.approx(X["size"].mean(), rel=0.05)
        path = tmp_path / "model.npz"
        model.save(path)
        assert str(load(path).summary_) == str(model.summary_)
    views = DecorrelatedKMeans(2, n_views=2, random_state=0).fit(X)
    assert views.profile_table()["view"].isin([1, 2]).all() and "view 1: 2 groups" in str(views.summary_)


def test_a_consensus_is_described_by_its_members_or_by_a_table(rng):
    z = np.repeat([0, 1], 40)
    Y = np.column_stack([z, z, np.where(rng.random(80) < 0.1, 1 - z, z)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Consensus(random_state=0).fit(Y)
    assert model.summary_.names == ["group 1", "group 2"] and "x0 = " in model.summary_.sentences[0]
    found = model.describe_groups(pd.DataFrame({"size": rng.normal(9.0 * z)}))
    assert sorted(found.names) == ["high size", "low size"] and found.noun == "object"
    with pytest.raises(ValueError, match="79 rows and the model was fitted to 80"):
        model.describe_groups(np.ones((79, 2)))


def test_other_levels_of_the_grain_are_described(rng):
    z = np.repeat([0, 1, 2], 30)
    X = pd.DataFrame({"size": rng.normal(np.array([0.0, 6.0, 30.0])[z], 1.0)})
    with interpreted(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Mixture("gaussian", inference="em", n_clusters=3, n_init=5, random_state=0).fit(X)
    for K in range(2, model.n_clusters_ + 1):
        assert model.describe_groups(at=K).sizes == np.bincount(model.at(K).labels).tolist()
    assert len(model.summary_.groups) == model.n_clusters_
    tree = Agglomerative(n_clusters=3).fit(X)
    assert sorted(tree.describe_groups(X, at=2).names) == ["high size", "low size"]


def test_numbers_of_dates_are_named_in_the_table(rng):
    days = np.datetime64("2024-01-01") + rng.integers(0, 300, 60)
    model = Agglomerative(n_clusters=2).fit(pd.DataFrame({"day": days, "size": rng.normal(size=60)}))
    table = model.profile_table().set_index("column").statistic
    assert table["day"].tolist() == ["mean (days since 1970-01-01)", "standard deviation (days)"]
    assert table["size"].tolist() == ["mean", "standard deviation"]


def test_frames_of_several_libraries(rng):
    model = Agglomerative(n_clusters=2).fit(rng.normal(size=(20, 2)))
    lists = model.profile_table(as_frame="dict")
    assert list(lists)[:4] == ["column", "kind", "statistic", "all"] and isinstance(lists["all"], list)
    for library in ("polars", "pyarrow"):
        pytest.importorskip(library)
        assert len(model.profile_table(as_frame=library)) == len(lists["all"])
    with pytest.raises(ValueError, match="as_frame must be one of"):
        model.profile_table(as_frame="numpy")


def test_without_columns_the_table_is_asked_for(rng):
    X = rng.normal(size=(12, 2))
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    model = Agglomerative(n_clusters=2, metric="precomputed").fit(D)
    assert model.summary_.names == ["group 1", "group 2"]
    with pytest.raises(ValueError, match=r"give a table of the same rows, profile_table\(X\)"):
        model.profile_table()
    assert model.profile_table(X).shape[1] == 6


def test_columns_that_are_mostly_missing_are_told_less(rng):
    z, frame = planted(rng)
    frame["left"] = rng.normal(900.0 * z, 20.0)
    assert [trait.column for trait in described(z, frame).groups[0].telling[:2]] == ["spend", "left"]
    frame.loc[rng.random(len(z)) < 0.85, "left"] = np.nan
    assert [trait.column for trait in described(z, frame).groups[0].telling[:2]] == ["spend", "channel"]
    with interpreted(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Mixture(inference="em", n_clusters=2, random_state=0).fit(frame)
    assert "left" not in model.summary_.groups[0].name


def test_what_is_left_of_zero_is_written_as_zero():
    size = ColumnSchema("size", "real")
    profile = {"mean": np.array([1e-15, 40.0]), "sd": np.array([1.0, 5.0]), "n": np.ones(2)}
    visits = {"rate": np.array([0.0004, 9.0]), "n": np.ones(2)}
    read = [described_column(size, profile, np.full(2, 0.5)).read(0).fact]
    read.append(described_column(ColumnSchema("visits", "count"), visits, np.full(2, 0.5)).read(0).fact)
    assert read == ["size 0", "visits 0"]


def test_lumps_and_numbers_without_a_level_read_well(rng):
    z = np.repeat([0, 1], 200)
    kills = np.where(rng.random(400) < 0.6, 0.0, rng.lognormal(1.0 + 3.0 * z, 0.3))
    floor = np.where(z == 0, rng.choice([0, 4], 400, p=[0.9, 0.1]), rng.choice([1, 2, 3], 400))
    sentences = [
        group.sentence
        for group in described(
            z, pd.DataFrame({"kills": kills, "floor": floor}), {"floor": "categorical"}
        ).groups
    ]
    assert all("kills (if not 0) " in sentence for sentence in sentences)
    assert "floor not 0" in sentences[1] and "not =" not in " ".join(sentences)


def test_levels_that_are_numbers_in_text_are_told_as_numbers(rng):
    z = np.repeat([0, 1], 100)
    grade = np.where(z == 0, rng.choice(["1", "2"], 200), rng.choice(["4", "absent"], 200))
    sentences = [group.sentence for group in described(z, pd.DataFrame({"grade": grade})).groups]
    assert "grade = " in sentences[0] and " in " in sentences[0]


def test_units_that_are_words_have_a_plural():
    age = read_table({"age": [f"{value} years" for value in range(10, 40)]}).schema.column("age")
    assert (value_text(age, 1.0), value_text(age, 5.58)) == ("1 year", "5.58 years")
    assert age.format.describe() == "numbers in years"


# ---- notebooks -----------------------------------------------------------------------------------------------------


def test_notebooks_show_the_answer_above_the_box_and_escape_it(rng):
    z = np.repeat([0, 1], 30)
    X = pd.DataFrame({NASTY: rng.normal(9.0 * z), "answer": np.where(z == 0, NASTY, "b")})
    model = Agglomerative(n_clusters=2)
    assert "groups of" not in model._repr_mimebundle_()["text/html"]
    model.fit(X)
    for html in (model._repr_mimebundle_()["text/html"], model._repr_html_()):
        assert html.index("2 groups of 60 rows") < html.index("sk-top-container")
        answer = html[: html.index("sk-top-container")]
        assert (
            "<script" not in answer and "&lt;script&gt;" in answer and "http" not in answer.split("<style")[0]
        )
    assert "<script" not in model.summary_._repr_html_()
