"""The answer of a fitted model in words: what ``summary_`` is, as text and as HTML for notebooks."""

from __future__ import annotations

from typing import NamedTuple

from partita.descriptions.groups import GroupDescription
from partita.wording import count, percent, safe

MAX_GROUPS = 40  # that are listed
COLORS = (
    "#0072b2",
    "#c98500",
    "#009e73",
    "#d55e00",
    "#b85c92",
    "#3d9bd1",
    "#8c6bb1",
    "#7f7f7f",
    "#a08c00",
    "#a6451c",
)
BOX = "border-left:4px solid #0072b2;padding:.3em .9em;margin:.3em 0;max-width:70em;line-height:1.45"
CELL = "text-align:left;vertical-align:top;padding:.15em .8em .15em 0;background:none"


class GroupsSummary(NamedTuple):
    """The groups of a fitted model in words; it prints as text, and notebooks show it as a table.

    Attributes
    ----------
    groups : tuple of GroupDescription
        The groups that have rows, with name, sentence and size.
    n_rows : int
        Number of rows, those in no group included.
    grade : str
        "firm", "fair" or "weak", or empty if the answer has no grade.
    reason : str
        The grade with its reason, or what else there is to say about the answer in one sentence.
    noun : str
        What is clustered: "row" or "object".
    title : str
        What was grouped, if it is one of several: "view 2".
    """

    groups: tuple[GroupDescription, ...]
    n_rows: int
    grade: str = ""
    reason: str = ""
    noun: str = "row"
    title: str = ""

    @property
    def names(self) -> list[str]:
        """The names of the groups, in the order of their labels."""
        return [group.name for group in self.groups]

    @property
    def sentences(self) -> list[str]:
        """One sentence per group."""
        return [group.sentence for group in self.groups]

    @property
    def sizes(self) -> list[int]:
        """Rows of each group."""
        return [group.size for group in self.groups]

    @property
    def head(self) -> str:
        """The number of groups and of rows."""
        text = f"{count(len(self.groups), 'group')} of {count(self.n_rows, self.noun)}"
        return f"{self.title}: {text}" if self.title else text

    def lines(self) -> list[str]:
        """One line per group: number, size, share and sentence."""
        shown = self.groups[:MAX_GROUPS]
        lines = [f"  {group.number}  {_size(group, self.noun)}  {group.sentence}" for group in shown]
        return lines + [f"  {text}" for text in self._rest()]

    def _rest(self) -> list[str]:
        """What the lines of the groups leave out."""
        outside = self.n_rows - sum(self.sizes)
        found = [f"{len(self.groups) - MAX_GROUPS} more groups"] if len(self.groups) > MAX_GROUPS else []
        return found + ([f"{count(outside, self.noun)} in no group"] if outside else [])

    def __str__(self) -> str:
        head = f"{self.head}. {self.reason}" if self.reason else f"{self.head}."
        return "\n".join([head, *self.lines()])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        rows = "".join(_html_row(group, self.noun) for group in self.groups[:MAX_GROUPS])
        rest = "".join(f"<p style='margin:.2em 0'>{safe(text)}</p>" for text in self._rest())
        reason = f" {safe(self.reason, 600)}" if self.reason else ""
        return (
            f"<div style='{BOX}'><p style='margin:.2em 0'><strong>{safe(self.head)}.</strong>{reason}</p>"
            f"<table style='border-collapse:collapse;margin:.3em 0'>{rows}</table>{rest}</div>"
        )


class ViewsInWords(NamedTuple):
    """The views of a table in words: the groups of each view that has groups.

    Attributes
    ----------
    views : tuple of GroupsSummary
    n_rows : int
    reason : str
        What there is to say about all views, in one sentence.
    """

    views: tuple[GroupsSummary, ...]
    n_rows: int
    reason: str = ""

    @property
    def head(self) -> str:
        """The number of views and of rows."""
        return f"{count(len(self.views), 'view')} of {count(self.n_rows, 'row')}"

    def __str__(self) -> str:
        head = f"{self.head}. {self.reason}" if self.reason else f"{self.head}."
        return "\n".join([head, *map(str, self.views)])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        reason = f" {safe(self.reason, 600)}" if self.reason else ""
        parts = "".join(view._repr_html_() for view in self.views)
        return f"<p style='margin:.2em 0'><strong>{safe(self.head)}.</strong>{reason}</p>{parts}"


def _size(group: GroupDescription, noun: str) -> str:
    return f"{count(group.size, noun)} ({percent(group.share)})"


def _html_row(group: GroupDescription, noun: str) -> str:
    """A line of the table: number, size, name, and the telling columns."""
    dot = f"<span style='color:{COLORS[group.label % len(COLORS)]}'>&#9679;</span>"
    name, told = safe(group.name, 200), safe(group.sentence.removeprefix(f"{group.name}: "), 1000)
    return (
        f"<tr style='background:none'><td style='{CELL};white-space:nowrap'>{dot} {group.number}</td>"
        f"<td style='{CELL};white-space:nowrap'>{safe(_size(group, noun))}</td>"
        f"<td style='{CELL}'><strong>{name}</strong><br>{told}</td></tr>"
    )
