"""What a chain of label vectors says: one partition, P(K), how sure, and whether to trust it."""
