"""Engines that climb to an optimum: EM, variational Bayes, collapsed variational Bayes, their starts and merges."""
