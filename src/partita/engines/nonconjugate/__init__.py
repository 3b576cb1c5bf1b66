"""Chains for families whose parameters cannot be integrated out."""
