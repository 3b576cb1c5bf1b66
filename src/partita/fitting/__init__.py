"""How mixtures are fitted: families of a table, requests, fits by each engine, tables larger than memory. Shared by all estimators that fit a mixture."""
