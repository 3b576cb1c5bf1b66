"""Consensus by votes and by quadratic mutual information."""
