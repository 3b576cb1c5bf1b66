"""OverlappingViews: a column may belong to several views, or to none."""
