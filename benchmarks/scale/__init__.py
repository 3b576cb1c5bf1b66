"""Tables that do not fit, and many workers."""
