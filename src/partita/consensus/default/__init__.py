"""`Consensus`, the default method: a tree of distinct rows, cut by pair information, then tempered memberships."""
