"""The error for files that cannot be read."""


class FileError(ValueError):
    """A file that cannot be read as a table; the message names the place and the remedy."""
