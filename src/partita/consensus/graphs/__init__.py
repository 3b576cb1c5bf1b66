"""Consensus by cuts of graphs and hypergraphs."""
