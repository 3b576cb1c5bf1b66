"""Consensus by trees of the distinct rows: evidence accumulation, its weighted form, and LACA."""
