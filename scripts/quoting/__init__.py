"""Figures of kept results in pages: tables from docs/tables.toml, sentences from docs/figures.toml."""
