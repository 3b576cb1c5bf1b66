"""CrossCat: every column belongs to one view, and the rows are clustered in each view."""
