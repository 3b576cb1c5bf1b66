"""The encoding of a text file: given, marked, or guessed."""

from __future__ import annotations

import codecs
import re
from importlib import import_module

MARKS = (  # the longer marks come first: that of UTF-16 begins that of UTF-32
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
FALLBACK = "cp1252"  # Western European text of Windows programs
_CANDIDATES = [
    "cp1252",
    "cp1250",
    "cp1251",
    "cp1253",
    "cp1254",
    "cp1257",
    "shift_jis",
    "gb18030",
    "big5",
    "euc_kr",
]
_ALPHABETS = {  # letters beyond a to z of languages in Latin script, by the encoding that has them
    "cp1252": (
        "äöüß", "àâæçèéêëîïôœùûüÿ", "áéíñóúü", "àáâãçéêíóôõú", "àèéìíîòóù", "åäöé", "æøåéèóô", "àçèéíïòóúü",
        "áéëèíïóöüú", "áðéíóúýþæö",
    ),
    "cp1250": ("áčďéěíňóřšťúůýž", "ąćęłńóśźż", "áéíóöőúüű", "čćđšž", "ăâîşţ", "áäčďéíĺľňóôŕšťúýž"),
    "cp1254": ("çğıöşüâî",),
    "cp1257": ("ąčęėįšųūž", "āčēģīķļņšūž", "äöõüšž"),
}  # fmt: skip
_LETTER = re.compile(
    r"[^\W\d_a-zA-Z]|(?<=[^\W\d_])[^\w\s\x00-\x7f’](?=[^\W\d_])"
)  # or a symbol inside a word
_MAX_LINES = 2000
_FOREIGN_LINE = re.compile(rb"[^\r\n]*[\x80-\xff][^\r\n]*")


def marked_encoding(data: bytes) -> str | None:
    """Return the encoding that a byte-order mark or the zero bytes of UTF-16 show; None if there are none.

    Examples
    --------
    >>> (
    ...     marked_encoding("size".encode("utf-16")),
    ...     marked_encoding("size".encode("utf-16-le")),
    ...     marked_encoding(b"size"),
    ... )
    ('utf-16', 'utf-16-le', None)
    """
    for mark, name in MARKS:
        if data.startswith(mark):
            return name
    head = data[:400]
    if len(head) >= 4 and len(data) % 2 == 0:  # ASCII in UTF-16 without a mark: every second byte is zero
        for name, zeros, others in (
            ("utf-16-le", head[1::2], head[::2]),
            ("utf-16-be", head[::2], head[1::2]),
        ):
            if not any(zeros) and all(others):
                return name
    return None


def guess_encoding(data: bytes) -> str:
    """Guess the encoding of bytes that are not UTF-8, by charset-normalizer if it is installed.

    The library hardly tells encodings of Latin script apart by a few words; of these, the one is taken that gives the
    letters of one language, Western European if several do. Without the library, Western European text is assumed.

    Examples
    --------
    >>> guess_encoding("name,city\\nJosé,Málaga\\nRené,Orléans\\nMüller,Köln\\n".encode("cp1252"))
    'cp1252'
    >>> guess_encoding("Dvořák,ano\\nČerný,ne\\n".encode("cp1250"))
    'cp1250'
    """
    sample = b"\n".join(found[0] for found, _ in zip(_FOREIGN_LINE.finditer(data), range(_MAX_LINES)))
    try:
        normalizer = import_module("charset_normalizer")
    except ImportError:
        return FALLBACK
    best = normalizer.from_bytes(sample, cp_isolation=_CANDIDATES).best()
    if best is None:
        return FALLBACK
    return _latin_encoding(sample) if best.encoding in _ALPHABETS else best.encoding


def _latin_encoding(sample: bytes) -> str:
    """The encoding in which the largest share of the letters belongs to the alphabet of one language."""
    shares = {}
    for encoding, alphabets in _ALPHABETS.items():
        letters = _LETTER.findall(sample.decode(encoding, errors="replace").replace("İ", "ı").lower())
        known = (sum(letter in alphabet for letter in letters) for alphabet in alphabets)
        shares[encoding] = max(known) / max(len(letters), 1)
    return max(shares, key=lambda encoding: shares[encoding])
