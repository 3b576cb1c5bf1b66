"""Columns with an order are found: ordered categories, words of a usual scale, answers in whole numbers."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from partita.execution import open_chunks, read_chunks
from partita.table import read_table
from partita.table.cells import parse_values
from partita.table.kinds import facts_of
from partita.table.scales import find_ratings, order_evidence, ordered_levels
from partita.table.sources import FrameSource

N, ITEMS = 600, 8


def kinds_of(X, **options):
    return read_table(X, **options).schema.kinds


def answers(rng, n_steps=5, n_rows=N):
    """Answers from 1 on: three groups of persons, and a trait that each item shows with noise."""
    trait = rng.choice([-1.5, 0.0, 1.5], size=n_rows) + rng.normal(size=n_rows)
    signs = np.where(np.arange(ITEMS) % 4 == 3, -1.0, 1.0)  # some questions are turned round
    latent = signs * trait[:, None] + rng.normal(size=(n_rows, ITEMS))
    cuts = np.quantile(latent, (np.arange(n_steps - 1) + 1) / n_steps)
    return np.searchsorted(cuts, latent) + 1


def codes(rng, n_levels=5, n_rows=N):
    """Codes of names: four groups, in each of which a column has its own probabilities."""
    z = rng.integers(4, size=n_rows)
    X = np.empty((n_rows, ITEMS), int)
    for j in range(ITEMS):
        p = rng.dirichlet(np.full(n_levels, 0.7), size=4)
        X[:, j] = [rng.choice(n_levels, p=p[k]) for k in z]
    X[:n_levels] = np.arange(n_levels)[:, None]  # every level occurs
    return X + 1


def frame_of(X, stem="q"):
    return pd.DataFrame(X, columns=[f"{stem}{j + 1}" for j in range(X.shape[1])])


def levels_of(values):
    return ordered_levels(parse_values(np.array(values, dtype=object), "answer"))


@pytest.mark.parametrize(
    ("words", "order"),
    [
        (["Agree", "Strongly disagree", "Neutral"], ("Strongly disagree", "Neutral", "Agree")),
        (["often", "never", "sometimes", "always"], ("never", "sometimes", "often", "always")),
        (["good", "Excellent", "poor", "fair"], ("poor", "fair", "good", "Excellent")),
        (["high", "low", "medium"], ("low", "medium", "high")),
        (["mild", "none", "severe"], ("none", "mild", "severe")),
        (["XL", "S", "M"], ("S", "M", "XL")),
        (
            ["very satisfied", "satisfied", "very dissatisfied"],
            ("very dissatisfied", "satisfied", "very satisfied"),
        ),
    ],
)
def test_words_in_the_usual_order(words, order):
    assert levels_of(words * 3) == order


@pytest.mark.parametrize(
    "words",
    [
        ["agree", "disagree"],
        ["red", "green", "blue"],
        ["agree", "neutral", "perhaps"],
        ["often", "usually", "never"],
    ],
)
def test_words_without_an_order(words):
    assert levels_of(words * 3) is None


def test_ordered_categories_of_frames():
    import narwhals as nw

    ordered = pd.Categorical(["low", "top", "mid"], ["low", "mid", "top", "never"], ordered=True)
    for frame in (
        pd.DataFrame({"a": ordered}),
        pl.DataFrame({"a": pl.Series(list(ordered), dtype=pl.Enum(["low", "mid", "top"]))}),
    ):
        raw = FrameSource(nw.from_native(frame)).column(0)
        assert raw.ordered and ordered_levels(raw) == ("low", "mid", "top")
    unordered = pd.DataFrame({"a": pd.Categorical(["low", "top", "mid"])})
    assert not FrameSource(nw.from_native(unordered)).column(0).ordered


# ---- answers in whole numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_steps", [4, 5, 7, 10])
def test_answers_on_one_scale_are_ordinal(rng, n_steps):
    """In 1,000 simulated tables of each size the share of the order is 0.68 to 0.91; the limit is 0.5."""
    X = answers(rng, n_steps)
    table = read_table(frame_of(X))
    assert set(table.schema.kinds) == {"ordinal"}
    assert table.schema.columns[0].levels == tuple(range(1, n_steps + 1))
    assert {c.decided for c in table.schema.account.columns} == {"the scale of several columns"}
    (note,) = [note for note in table.notes if note.code == "ordered"]
    assert "1 < 2 < " in note.message and "--kind column=categorical" in note.message
    assert kinds_of(X) == ("ordinal",) * ITEMS  # an array, too
    assert kinds_of(frame_of(X), infer_ordinal=False) == ("categorical",) * ITEMS


@pytest.mark.parametrize("n_levels", [5, 7])
def test_codes_on_one_scale_are_not(rng, n_levels):
    """In 300 simulated tables the share of the order has mean 0.08 and deviation 0.05 at most; the limit is 0.5."""
    X = codes(rng, n_levels)
    table = read_table(frame_of(X))
    assert set(table.schema.kinds) == {"categorical"}
    (note,) = [note for note in table.notes if note.code == "one_scale"]
    assert len(note.columns) == ITEMS and "--kind 'q*=ordinal'" in note.message
    assert table.schema.account.columns[0].change == "kinds={'q1': 'ordinal'}, --kind q1=ordinal"
    assert kinds_of(X) == ("categorical",) * ITEMS


def test_independent_columns_are_not(rng):
    """Without dependence there is no evidence (a strength above 3 has a probability of about 0.002)."""
    tables = [np.bincount(rng.integers(256, size=2000), minlength=256).reshape(16, 16) for _ in range(9)]
    shares = [order_evidence([table]) for table in tables]
    assert sum(strength > 3.0 for _, strength in shares) < 5  # probability below 1e-11
    assert order_evidence([]) == (0.0, 0.0)


def test_order_evidence_by_hand():
    """A table of agreement has r = 1 and chi-squared n (L - 1)."""
    table = np.zeros((16, 16), int)
    table[6:9, 6:9] = np.diag([40, 40, 40])
    share, strength = order_evidence([table])
    assert share == pytest.approx((120 - 1) / (240 - 4)) and strength == pytest.approx((240 - 4) / np.sqrt(8))


def test_few_columns_or_steps_are_not_enough(rng):
    X = answers(rng)
    assert set(kinds_of(frame_of(X[:, :4]))) == {"categorical"}
    assert set(kinds_of(frame_of(answers(rng, 3)))) == {"categorical"}
    other = frame_of(X).assign(region=rng.integers(1, 4, N), size=rng.normal(size=N))
    assert kinds_of(other) == ("ordinal",) * ITEMS + ("categorical", "real")


def test_items_of_the_same_name_belong_to_the_scale(rng):
    X = answers(rng)
    X[:, 2] = X[:, 2].clip(2, 5)  # nobody chose the lowest answer
    assert set(kinds_of(frame_of(X))) == {"ordinal"}
    named = frame_of(X).rename(columns={"q3": "children"})
    assert kinds_of(named)[2] == "categorical"


def test_a_survey_of_many_items_has_one_kind(rng):
    X = np.hstack([answers(rng) for _ in range(5)])
    X[:, 7] = X[:, 7].clip(2, 4)
    frame = frame_of(X).rename(columns={"q8": "last"})
    assert set(kinds_of(frame)) == {"ordinal"}


def test_missing_cells_and_codes(rng):
    X = answers(rng).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    assert set(kinds_of(frame_of(X))) == {"ordinal"}
    X[rng.random(X.shape) < 0.05] = 9
    table = read_table(frame_of(X))
    assert set(table.schema.kinds) == {"categorical"}
    assert "suspected_code" in {note.code for note in table.notes}
    assert set(kinds_of(frame_of(X), missing_codes=9)) == {"ordinal"}


@pytest.mark.parametrize("make", [answers, codes])
@pytest.mark.parametrize("as_frame", [False, True])
def test_chunks_decide_as_the_whole_table(rng, make, as_frame, tmp_path):
    X = make(rng)
    if as_frame:
        frame_of(X).assign(size=rng.normal(size=N)).to_parquet(tmp_path / "table.parquet")
        whole = read_table(pd.read_parquet(tmp_path / "table.parquet")).schema
        source = open_chunks(tmp_path / "table.parquet", rows=97)
    else:
        whole, source = read_table(X).schema, open_chunks(X, rows=97)
    found = read_chunks(source, None).schema
    assert found.kinds == whole.kinds and ("ordinal" in found.kinds) == (make is answers)
    assert [column.levels for column in found.columns] == [column.levels for column in whole.columns]


def test_facts_decide_which_columns_could_be_answers(rng):
    raws = [parse_values(column, f"q{j}") for j, column in enumerate(answers(rng).T)]
    shifted = [parse_values(column - 3, raw.name) for column, raw in zip(answers(rng).T, raws)]
    for columns in (raws, shifted):  # 1 to 5, and -2 to 2
        facts = {j: facts_of(raw) for j, raw in enumerate(columns)}
        names = [raw.name for raw in columns]
        assert find_ratings(facts, columns.__getitem__, names).ordered == set(range(ITEMS))
    assert find_ratings({}, raws.__getitem__, []) == (set(), set())


# ---- models ----------------------------------------------------------------------------------------------------


def ordered_frame(rng):
    words = pd.Categorical(rng.choice(["low", "mid", "top"], size=40), ["low", "mid", "top"], ordered=True)
    return pd.DataFrame({"grade": words, "size": rng.normal(size=40)})


def test_models_that_cannot_use_the_order_read_categories(rng):
    from partita import BayesianTree, CrossCat, Mixture

    frame = ordered_frame(rng)
    quick = {"n_chains": 2, "n_draws": 5, "burn_in": 5, "random_state": 0}
    assert Mixture(**quick).fit(frame).schema_.kinds == ("ordinal", "real")
    assert (
        Mixture(inference="cvb", max_clusters=3, random_state=0).fit(frame).schema_.kinds[0] == "categorical"
    )
    student = Mixture({"real": "student"}, **quick).fit(frame)
    assert student.schema_.kinds == ("categorical", "real")
    assert BayesianTree().fit(frame).schema_.kinds == ("categorical", "real")
    views = CrossCat(n_chains=1, n_draws=2, burn_in=2, random_state=0).fit(frame)
    assert views.schema_.kinds == ("categorical", "real")


# ---- ranges and numbered answers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "levels",
    [
        ("under 18", "18-24", "25-34", "35-64", "65+"),
        ("<10k", "10k-25k", "25k-50k", "over 50k"),
        ("$0 - $999", "$1,000 - $9,999", "$10,000 and more"),
        ("bis 5", "6 bis 10", "11 bis 20"),
        ("1 - never", "2", "3", "4 - always"),
        ("1: low", "2: middle", "10: high"),
    ],
)
def test_ranges_and_numbered_answers_have_an_order(levels, global_random_seed):
    shuffled = np.random.default_rng(global_random_seed).permutation(levels)
    column = read_table({"answer": np.tile(shuffled.astype(object), 8)}).schema.column("answer")
    assert column.kind == "ordinal" and column.levels == levels


@pytest.mark.parametrize(
    "levels",
    [
        ("0-10", "5-15", "15-20"),  # overlap
        ("A1", "A2", "A3"),
        ("3-1", "2-0", "0-2"),  # scores
        ("1 - a", "1 - b", "2 - c"),
        ("18-24", "old", "25-34"),
        ("2 rooms", "3 rooms", "4 rooms and more"),
    ],
)
def test_other_texts_with_numbers_have_no_order(levels):
    assert read_table({"answer": np.array(levels * 8, dtype=object)}).schema.kinds != ("ordinal",)


def test_answers_without_a_place_on_the_scale_are_named(capsys):
    answers = ["agree", "neutral", "disagree", "Don't know"] * 9
    table = read_table({"answer": np.array(answers, dtype=object)})
    assert table.schema.kinds == ("categorical",)
    assert "Don't know" in next(note.message for note in table.notes if note.code == "no_answers")
    assert read_table(
        {"answer": np.array(answers, dtype=object)}, missing_codes="Don't know"
    ).schema.kinds == ("ordinal",)


def test_columns_of_ticks_are_named():
    table = read_table({"a": np.array(["x", None] * 9, dtype=object), "b": np.arange(18) % 3})
    assert next(note.columns for note in table.notes if note.code == "ticks") == ("a",)
    assert not any(note.code == "constant" for note in table.notes)


def test_answers_as_numbers(rng):
    """As models of views read them: whole numbers on one scale are real, words in an order are categories."""
    mood = rng.integers(0, 3, size=200)
    frame = pd.DataFrame({f"q{j}": 1 + mood + rng.integers(0, 3, size=200) for j in range(5)})
    frame["codes"] = rng.integers(0, 3, size=200)
    frame["words"] = np.array(["never", "sometimes", "often"])[mood]
    kinds = read_table(frame, infer_ordinal="numbers").schema.kinds
    assert kinds[:5] == ("real",) * 5 and kinds[-1] == "categorical"
    assert read_table(frame.iloc[:, :5], infer_ordinal="numbers").schema.kinds == ("real",) * 5
    assert read_table(frame.iloc[:, :5].to_numpy(), infer_ordinal="numbers").schema.kinds == ("real",) * 5
    assert read_table(frame, infer_ordinal=False).schema.kinds[0] == "categorical"
