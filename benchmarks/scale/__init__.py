"""Tables larger than memory, and many workers."""
