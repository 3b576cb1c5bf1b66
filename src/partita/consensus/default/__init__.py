"""`Consensus`, the default consensus method: a tree of distinct rows, cut by pair information, then tempered memberships."""
