"""Profiles of the clusters of each view, in the user's units and labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from partita.engines.passes.rows import Statistics
from partita.families import Block, Lumps
from partita.families.contract import summarize
from partita.fitting.profiles import profile_columns, with_lump
from partita.views.draws import Draw, Factor
from partita.views.parts import ColumnParts, Place

Profiles = dict[str, dict[str, np.ndarray]]


def view_profiles(
    estimate: Draw, draw: Draw, blocks: Sequence[Block], parts: Mapping[int, ColumnParts], schema: Any
) -> list[Profiles]:
    """For each factor of an estimate, and each of its columns: the profile of each state.

    Of a column with two parts of which a view has one only, the other is that of all rows, as ``draw`` knows it.
    """
    out = []
    for factor in estimate.factors:
        found = profile_columns(*factor_statistics(factor, blocks), schema)
        for number in np.unique(factor.columns).tolist():
            if parts[number].lumps is not None:
                name = parts[number].column.name
                found[name] = _completed(found[name], factor, draw, parts[number])
        out.append(found)
    return out


def _completed(
    profile: dict[str, np.ndarray], factor: Factor, draw: Draw, parts: ColumnParts
) -> dict[str, np.ndarray]:
    """The profile of a column with a lump, with what its view does not have."""
    assert parts.lump_place is not None
    K = len(factor.log_weights)
    if "lump" not in profile:
        share = _share_of_lump(draw, parts.lump_place)
        return with_lump({"lump": np.full(K, parts.lump), "lump_share": np.full(K, share)}, profile)
    if np.isnan(profile["mean"]).any():
        mean, sd = parts.moments_beside()
        others = {"mean": np.full(K, float(mean[0])), "sd": np.full(K, float(sd[0]))}
        return with_lump({name: profile[name] for name in ("lump", "lump_share")}, others)
    return profile


def _share_of_lump(draw: Draw, place: Place) -> float:
    """Posterior mean of the share of a lump in all rows."""
    for factor in draw.factors:
        for part in factor.blocks:
            if part.block == place.block and place.position in part.positions:
                pooled = np.ascontiguousarray(part.S.sum(axis=1, keepdims=True))
                at = int(np.flatnonzero(part.positions == place.position)[0])
                return 1.0 - float(summarize(part.family, pooled)["probabilities"][0, at])
    return np.nan


def factor_statistics(factor: Factor, blocks: Sequence[Block]) -> tuple[list[Block], Statistics]:
    """The blocks of the columns of a factor, lumps first, and the statistics of its states."""
    parts = []
    ordered = sorted(factor.blocks, key=lambda part: not isinstance(blocks[part.block].coding, Lumps))
    for part in ordered:
        block = blocks[part.block]
        coding = None if block.coding is None else block.coding.take(part.positions)
        columns = tuple(block.columns[p] for p in part.positions)
        parts.append(Block(part.family, None, columns, coding=coding))
    S = tuple(part.S for part in ordered)
    return parts, Statistics(np.exp(factor.log_weights), S, np.nan, np.nan, 0.0)
