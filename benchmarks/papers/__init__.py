"""Figures and tables of the papers, repeated."""
