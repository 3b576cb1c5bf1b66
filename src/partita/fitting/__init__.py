"""From a table to a fitted mixture: families of its columns, engines, tables larger than memory.

Shared by the estimators that fit mixtures, views and trees.
"""
