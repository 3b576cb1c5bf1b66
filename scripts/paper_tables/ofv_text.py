"""Niu, Dy and Ghahramani, table 3: text."""

from __future__ import annotations

from paper_tables.markdown import items

NAMES = {
    "ours": "`OverlappingViews`",
    "disjoint": "one view per word (CRP-CRP)",
    "dp_multinomial": "`DPMultinomial`",
}


def orders(ours: dict) -> str:
    """The models of each set by perplexity."""
    lines = []
    for data, found in ours.items():
        values = {method: found[method]["perplexity"] for method in NAMES}
        order = ", ".join(NAMES[method] for method in sorted(values, key=values.__getitem__))
        least = min(values["disjoint"], values["dp_multinomial"])
        lines.append(
            f"{data}: {order}, lowest first; `OverlappingViews` is {values['ours'] / least - 1:+.1%} from the lower of the others."
        )
    agree = [data for data, found in ours.items() if in_printed_order(found)]
    lines.append(
        f"The printed order (overlapping, then disjoint views, then one) is reproduced on {', '.join(agree) or 'none of them'}."
    )
    return items(lines)


def in_printed_order(found: dict) -> bool:
    values = [found[method]["perplexity"] for method in NAMES]
    return values == sorted(values)


def top_words(ours: dict) -> str:
    """The words of the first clusters of the first views."""
    lines = []
    for data, found in ours.items():
        for number, view in enumerate(found["ours"]["top_words"][:3], 1):
            clusters = "; ".join(" ".join(word.removeprefix("w_") for word in words) for words in view[:4])
            lines.append(f"{data}, view {number}: {clusters}")
    return items(lines)
