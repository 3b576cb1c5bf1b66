"""Topics of texts, from many clusterings.

The documentation of the functions of scipy, embedded by latent semantic analysis. Twenty k-means runs with 4 to 23
clusters disagree; the left picture shows the score of each number of topics in their consensus, the right one in which
modules of scipy the functions of each topic are ([the story](stories/texts.md)).
"""

import importlib
import inspect

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from partita import Consensus
from partita.plotting import plot_contingency, plot_k_scores

modules = ["fft", "interpolate", "linalg", "ndimage", "optimize", "signal", "special", "stats"]
texts, module_of = [], []
for module in modules:
    functions = vars(importlib.import_module(f"scipy.{module}"))
    for name, function in sorted(functions.items()):
        text = inspect.getdoc(function) or ""
        if name[0] != "_" and callable(function) and not inspect.isclass(function) and len(text) > 400:
            texts.append(text.split("Examples\n---")[0])
            module_of.append(module)

words = TfidfVectorizer(stop_words="english", min_df=3, max_df=0.5, sublinear_tf=True).fit_transform(texts)
embedding = normalize(TruncatedSVD(50, random_state=0).fit_transform(words))
runs = np.column_stack([KMeans(k, n_init=1, random_state=k).fit_predict(embedding) for k in range(4, 24)])
model = Consensus(random_state=0).fit(runs)

figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", width_ratios=[1, 1.4])
plot_k_scores(model, ax=axes[0])
plot_contingency(np.array(module_of), model.labels_, names=("module", "topic"), ax=axes[1])
