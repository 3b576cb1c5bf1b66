"""``python -m partita`` does what the command ``partita`` does."""

from partita.cli.start import script

if __name__ == "__main__":
    script()
