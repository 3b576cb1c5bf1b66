"""Sentences that quote figures: docs/figures.toml has a template of each, the page has plain numbers."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from quoting import regions
from quoting.results import FIGURE, Results, below

NUMBER = r"(?<![\w.+-])([-+]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?%?)(?!\w|[.,]\d)"
WORDS = r"(\S+?(?:\s+\S+?){0,11}?)"  # a version, a date, the name of a machine, a remark


class Sentence(NamedTuple):
    """A template, and what its paths begin with."""

    template: str
    under: str


class Fault(NamedTuple):
    """A sentence of a page that does not say what the results say."""

    found: str | None  # None: the page has no such sentence
    right: str
    n_places: int = 1  # how many places of the page fit the template

    def message(self, page: str) -> str:
        if self.found is None:
            return f"{page} has no sentence {self.right!r}: write it, or change its template in docs/figures.toml"
        if self.n_places > 1:
            return (
                f"{page} has {self.n_places} places like {self.right!r}: add words to the template in "
                "docs/figures.toml, so that it fits only one of them"
            )
        return f"{page} says {self.found!r}; the results give {self.right!r}"


def sentences_of(specs: list[dict[str, Any]]) -> list[Sentence]:
    """Templates as they are to be found: white space counts as one space."""
    return [
        Sentence(" ".join(template.split()), spec.get("under", ""))
        for spec in specs
        for template in spec["sentences"]
    ]


def matches(page: str, sentence: Sentence, results: Results) -> list[re.Match[str]]:
    """Where the words of the sentence stand in the page, outside regions, whatever its figures are."""
    return list(re.finditer(pattern(sentence, results), regions.blank(page)))


def pattern(sentence: Sentence, results: Results) -> str:
    """The words of the template with any white space between them, and a group for every figure."""
    text, end = "", 0
    for figure in FIGURE.finditer(sentence.template):
        value = results.look_up(below(sentence.under, figure[1]))
        text += literal(sentence.template[end : figure.start()])
        text += WORDS if isinstance(value, str) else NUMBER
        end = figure.end()
    return text + literal(sentence.template[end:])


def literal(words: str) -> str:
    return r"\s+".join(re.escape(word) for word in re.split(r"\s+", words))


def faults(page: str, sentence: Sentence, results: Results) -> list[Fault]:
    """What is wrong with a sentence in the page: stale figures, no such sentence, or several."""
    right = results.fill(sentence.template, sentence.under)
    found = [" ".join(match[0].split()) for match in matches(page, sentence, results)]
    if not found:
        return [Fault(None, right)]
    if len(found) > 1:
        return [Fault(found[0], right, n_places=len(found))]
    return [Fault(text, right) for text in found if text != " ".join(right.split())]


def rewrite(page: str, sentence: Sentence, results: Results) -> str:
    """Return the page with the right figures in the sentence.

    If several places fit the template, nothing is replaced: a remark may have any words, so the template could
    overwrite a sentence about something else. `faults` reports such a template.
    """
    right = [
        results.figure(below(sentence.under, figure[1]), figure[2] or "")
        for figure in FIGURE.finditer(sentence.template)
    ]
    places = matches(page, sentence, results)
    if len(places) == 1:
        for group in range(len(right), 0, -1):
            page = page[: places[0].start(group)] + right[group - 1] + page[places[0].end(group) :]
    return page


def blank(page: str, sentences: list[Sentence], results: Results) -> str:
    """The page without regions and without the figures that sentences quote: what is left has no result behind it."""
    left = regions.blank(page)
    for sentence in sentences:
        for match in matches(page, sentence, results):
            for group in range(1, len(match.groups()) + 1):
                start, end = match.span(group)
                left = left[:start] + "#" * (end - start) + left[end:]
    return left
