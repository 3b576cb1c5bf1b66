"""One column in all groups: how much it tells about each, and how it reads in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from partita.descriptions.information import (
    information_of_counts,
    information_of_durations,
    information_of_normals,
    information_of_shares,
    information_of_words,
)
from partita.table import ColumnSchema
from partita.table.formats import unit_of_many
from partita.wording import number, one_line, percent

COLUMN_LENGTH, LEVEL_LENGTH = 40, 30
SHIFTED = 0.25  # deviations of the whole table from which a group is high or low
RATIO = 1.5  # the same of skewed columns, whose deviation is that of a few large values
NARROW, WIDE = 0.75, 1.33  # deviation of a group by that of the table from which it is medium, or varied
MOSTLY, SELDOM = 0.5, 0.05  # shares from which a group has a level, and up to which it does not have it
# a level that a group lacks names it if its share differs so much more than that of the one it has
CLEARLY = 1.2
MIN_NATS_OF_SHARE = 0.07  # per share of the counts: a share that is half as large again
MIN_SHARE_OF_SPREAD = 1e-8  # of the deviation of the table: a smaller number is written as zero
MIN_SHARE_OF_MEAN = 1e-3  # of the mean of the table: the same of means of counts
TRUTHS = {True: "yes", False: "no"}


class Reading(NamedTuple):
    """How one column reads in one group and in the whole table."""

    here: str  # "1.1 ± 0.1", or the share of the level that differs most: "62% web"
    whole: str
    fact: str  # in a sentence: "spend 340", "channel web 62%"
    contrast: str  # the whole table in a sentence: "120", "31%"
    words: str  # in a name: "high spend", "channel web"; "" if there are none
    exact: str  # in a name that two groups would share: "spend 340"
    is_clear: bool = True  # whether the words say more than that the group is medium or varied


class DescribedColumn:
    """One column in all groups; `weights` are the shares of the groups among its observed cells."""

    def __init__(self, column: ColumnSchema, profile: Mapping[str, Any], weights: np.ndarray) -> None:
        self.column, self.profile, self.weights = column, profile, weights
        self.name = one_line(column.name, COLUMN_LENGTH)

    def information(self) -> np.ndarray:
        """Nats that one cell tells about each group."""
        raise NotImplementedError

    def read(self, k: int) -> Reading:
        """How the column reads in group k."""
        raise NotImplementedError

    def floor(self, k: int) -> float | None:
        """Nats from which the column is told of group k; None: by the rule of all columns."""
        return None


def described_column(
    column: ColumnSchema, profile: Mapping[str, Any], weights: np.ndarray
) -> DescribedColumn:
    """The description that the profile of a column allows."""
    if "probabilities" in profile:
        kind: type[DescribedColumn] = OrderedShares if column.kind == "ordinal" else LevelShares
    elif "lump" in profile:
        kind = LumpedNumbers
    elif "mean" in profile:
        kind = Numbers
    else:
        kind = Words if "share" in profile else CountMeans
    return kind(column, profile, weights)


# ---- numbers -----------------------------------------------------------------------------------------------------


class Numbers(DescribedColumn):
    """A real column: means, or medians where it is skewed."""

    def __init__(self, column: ColumnSchema, profile: Mapping[str, Any], weights: np.ndarray) -> None:
        super().__init__(column, profile, weights)
        self.mean, self.sd = np.asarray(profile["mean"]), np.asarray(profile["sd"])
        self.whole_mean = float(weights @ self.mean)
        self.whole_sd = float(np.sqrt(weights @ (self.sd**2 + (self.mean - self.whole_mean) ** 2)))
        skewed = "median" in profile and "whole_median" in profile
        self.center = np.asarray(profile["median"]) if skewed else self.mean
        self.whole_center = float(profile["whole_median"][0]) if skewed else self.whole_mean

    def information(self) -> np.ndarray:
        return information_of_normals(self.mean, self.sd, self.weights)

    def read(self, k: int) -> Reading:
        here = f"{self._value(self.mean[k])} ± {spread_text(self.column, float(self.sd[k]))}"
        whole = f"{self._value(self.whole_mean)} ± {spread_text(self.column, self.whole_sd)}"
        value, contrast = self._value(self.center[k]), self._value(self.whole_center)
        if "whole_median" in self.profile:
            here, whole = f"{value} (median)", f"{contrast} (median)"
        exact = fact = f"{self.name} {value}"
        shift = self._shift(k)
        words = _place(self.column, self.name, shift, float(self.sd[k]) / max(self.whole_sd, 1e-300))
        is_clear = abs(shift) > SHIFTED
        if words and not is_clear:  # the group differs in its spread
            fact = f"{fact} ± {spread_text(self.column, float(self.sd[k]))}"
            contrast = f"{contrast} ± {spread_text(self.column, self.whole_sd)}"
        return Reading(here, whole, fact, contrast, words, exact, is_clear)

    def _shift(self, k: int) -> float:
        """The distance from the whole table, in its deviations; in skewed columns a clear ratio is a shift as well."""
        center, whole = float(self.center[k]), self.whole_center
        shift = (center - whole) / max(self.whole_sd, 1e-300)
        if (
            "whole_median" in self.profile
            and min(center, whole) > 0.0
            and max(center, whole) > RATIO * min(center, whole)
        ):
            return float(np.copysign(max(abs(shift), 2.0 * SHIFTED), shift))
        return shift

    def _value(self, value: float) -> str:
        is_noise = abs(value) < MIN_SHARE_OF_SPREAD * self.whole_sd  # what is left of zero by rounding
        return value_text(self.column, 0.0 if is_noise and not self.column.holds_dates else float(value))


class LumpedNumbers(Numbers):
    """A real column of which one value fills many cells: the share of this value, and the others."""

    def __init__(self, column: ColumnSchema, profile: Mapping[str, Any], weights: np.ndarray) -> None:
        super().__init__(column, profile, weights)
        ending = "_elsewhere"
        others = {name.removesuffix(ending): values for name, values in profile.items() if ending in name}
        self.share = np.clip(np.asarray(profile["lump_share"], float), 0.0, 1.0)
        self.whole_share = float(weights @ self.share)
        rest = np.maximum(weights * (1.0 - self.share), 1e-300)
        self.others = Numbers(column, others, rest / rest.sum())
        self.of_lump = information_of_shares(np.column_stack([self.share, 1.0 - self.share]), weights)
        self.of_others = (1.0 - self.share) * self.others.information()

    def information(self) -> np.ndarray:
        return self.of_lump + self.of_others

    def read(self, k: int) -> Reading:
        lump = self._value(self.profile["lump"][k])
        others = self.others.read(k)
        here = f"{percent(self.share[k])} {lump}, others {others.here}"
        whole = f"{percent(self.whole_share)}, {others.whole}"
        if self.of_lump[k] < self.of_others[k]:
            fact = f"{self.name} (if not {lump}) {others.fact.removeprefix(self.name).strip()}"
            return Reading(here, whole, fact, others.contrast, others.words, others.exact, others.is_clear)
        words = f"{self.name} {lump}" if self.share[k] >= MOSTLY else f"{self.name} not {lump}"
        if (self.share[k] < self.whole_share) == (self.share[k] >= MOSTLY):
            words = ""  # mostly the lump, but less than elsewhere
        fact = f"{self.name} {lump} in {percent(self.share[k])}"
        return Reading(
            here, whole, fact, percent(self.whole_share), words, f"{words} {percent(self.share[k])}"
        )


class CountMeans(DescribedColumn):
    """Counts, or durations: their means."""

    def __init__(self, column: ColumnSchema, profile: Mapping[str, Any], weights: np.ndarray) -> None:
        super().__init__(column, profile, weights)
        self.rate = np.asarray(profile["rate"], float)
        self.mean = self.rate if column.kind == "count" else 1.0 / self.rate
        self.whole = float(weights @ self.mean)
        deviation = np.sqrt(self.mean) if column.kind == "count" else self.mean
        self.whole_sd = float(np.sqrt(weights @ (deviation**2 + (self.mean - self.whole) ** 2)))

    def information(self) -> np.ndarray:
        if self.column.kind == "count":
            return information_of_counts(self.rate, self.weights)
        return information_of_durations(self.rate, self.weights)

    def read(self, k: int) -> Reading:
        is_zero = (
            self.mean[k] < MIN_SHARE_OF_MEAN * self.whole
        )  # no count was seen; the prior leaves a small mean
        here, whole = number(0.0 if is_zero else self.mean[k]), number(self.whole)
        shift = (self.mean[k] - self.whole) / max(self.whole_sd, 1e-300)
        fact = f"{self.name} {here}"
        words = _place(self.column, self.name, shift, NARROW - 0.01)
        return Reading(here, whole, fact, whole, words, fact, abs(shift) > SHIFTED)


class Words(DescribedColumn):
    """A column of count vectors: its share of the counts of a row."""

    def __init__(self, column: ColumnSchema, profile: Mapping[str, Any], weights: np.ndarray) -> None:
        super().__init__(column, profile, weights)
        self.share = np.asarray(profile["share"], float)
        self.whole = float(weights @ self.share)

    def information(self) -> np.ndarray:
        return information_of_words(self.share, self.weights)

    def read(self, k: int) -> Reading:
        here, whole = percent(self.share[k]), percent(self.whole)
        fact = f"{self.name} {here}"
        return Reading(here, whole, fact, whole, self.name if self.share[k] > self.whole else "", fact)

    def floor(self, k: int) -> float | None:
        """A row has many counts, so that one of them need not tell much: the share must differ clearly."""
        return MIN_NATS_OF_SHARE * max(float(self.share[k]), self.whole)


def _place(column: ColumnSchema, name: str, shift: float, width: float) -> str:
    """High, low, medium or varied, with the name of the column; "" if none of them."""
    if column.holds_dates:
        high, low, medium, varied = "late", "early", "middle", "varied"
    else:
        high, low, medium, varied = "high", "low", "medium", "varied"
    if shift > SHIFTED:
        return f"{high} {name}"
    if shift < -SHIFTED:
        return f"{low} {name}"
    return f"{medium} {name}" if width < NARROW else f"{varied} {name}" if width > WIDE else ""


def value_text(column: ColumnSchema, value: float) -> str:
    """A number in the units of its column: dates as days, money and percent with their unit.

    Examples
    --------
    >>> value_text(ColumnSchema("size", "real"), 1234.5)
    '1,234'
    """
    form = column.format
    if form is None:
        return number(value)
    if form.holds == "date":
        return form.write(value)
    if form.unit == "%":
        return f"{number(value)}%"
    before, slash, per = form.unit.partition("/")
    if slash and len(before) < 2:  # "$/mo", "/5"
        return f"{before}{number(value)}/{per}"
    text = number(value)
    if len(form.unit) == 1:
        return f"{form.unit}{text}"
    return f"{text} {form.unit if text == '1' else unit_of_many(form.unit)}".rstrip()


def spread_text(column: ColumnSchema, value: float) -> str:
    """A standard deviation in the units of its column: that of dates in days, that of times of the day in hours.

    Examples
    --------
    >>> spread_text(ColumnSchema("size", "real"), 12.345)
    '12'
    """
    if not column.holds_dates:
        return number(value, 2)
    of_day = column.format is not None and column.format.is_time_of_day
    return f"{number(24.0 * value, 2)} hours" if of_day else f"{number(value, 2)} days"


# ---- levels ------------------------------------------------------------------------------------------------------


class LevelShares(DescribedColumn):
    """A binary or categorical column: the share of the level that differs most."""

    def __init__(self, column: ColumnSchema, profile: Mapping[str, Any], weights: np.ndarray) -> None:
        super().__init__(column, profile, weights)
        self.P = np.asarray(profile["probabilities"], float)
        self.p = weights @ self.P
        given = list(profile.get("levels", column.levels))
        self.levels = [*given, *["(other)"] * (self.P.shape[1] - len(given))]

    def information(self) -> np.ndarray:
        return information_of_shares(self.P, self.weights)

    def read(self, k: int) -> Reading:
        v = self._told_level(k)
        share, whole = percent(self.P[k, v]), percent(self.p[v])
        here = f"{share} {level_text(self.levels[v])}"
        words = self._words(k)
        fact = f"{self._with(v)} {'in ' if _is_number(self.levels[v]) else ''}{share}"
        return Reading(here, whole, fact, whole, words, f"{words} {percent(self._most(k))}")

    def _told_level(self, k: int) -> int:
        """The level whose share is told: that which differs most; of two, the one that is more frequent here."""
        if self.column.kind == "binary":
            return 1
        difference = self.P[k] - self.p
        return int((difference if len(self.p) == 2 else np.abs(difference)).argmax())

    def _words(self, k: int) -> str:
        """The level that the group has, or the one that it does not have."""
        P, p = self.P[k], self.p
        gained = int((P * np.log(np.maximum(P, 1e-300) / np.maximum(p, 1e-300))).argmax())
        lost = int((p - P).argmax())
        gain, loss = P[gained] - p[gained], p[lost] - P[lost]
        if P[lost] <= SELDOM and loss > CLEARLY * gain:
            return self._with(lost, "not ")
        if P[gained] >= MOSTLY and gain > 0:
            return self._with(gained)
        if loss > gain:
            return self._with(lost, "seldom ")
        return self._with(gained, "often ") if gain > 0 else ""

    def _most(self, k: int) -> float:
        return float(self.P[k].max())

    def _with(self, v: int, before: str = "") -> str:
        """The column with one of its levels."""
        equals = "= " if _is_number(self.levels[v]) and not before else ""
        return f"{self.name} {before}{equals}{level_text(self.levels[v])}"


class OrderedShares(LevelShares):
    """An ordinal column: its median level, and whether it is high or low."""

    def read(self, k: int) -> Reading:
        found = super().read(k)
        at, whole = _median_level(self.P[k]), _median_level(self.p)
        if at == whole:
            return found._replace(words=self._shift(k) or found.words)
        fact = self._with(at)
        return found._replace(
            fact=fact,
            contrast=level_text(self.levels[whole]),
            words=self._shift(k) or found.words,
            exact=fact,
        )

    def _shift(self, k: int) -> str:
        ranks = np.arange(len(self.p))
        whole = self.p @ ranks
        deviation = np.sqrt(self.p @ (ranks - whole) ** 2)
        return _place(
            self.column, self.name, (self.P[k] @ ranks - whole) / max(deviation, 1e-300), (NARROW + WIDE) / 2
        )


def _is_number(level: Any) -> bool:
    if isinstance(level, str):
        return level.strip("+-").replace(".", "", 1).isdigit()
    return isinstance(level, (int, float, np.number)) and not isinstance(level, (bool, np.bool_))


def _median_level(P: np.ndarray) -> int:
    return int(np.searchsorted(np.cumsum(P), 0.5 * P.sum()))


def level_text(level: Any) -> str:
    """A level on one line: yes and no for truth values, numbers without needless digits.

    Examples
    --------
    >>> level_text(True), level_text(3.0), level_text("web")
    ('yes', '3', 'web')
    """
    if isinstance(level, (bool, np.bool_)):
        return TRUTHS[bool(level)]
    text = f"{level:g}" if isinstance(level, float) else str(level)
    return one_line(text, LEVEL_LENGTH)
