"""The sub-cluster split-merge sampler, whose steps run over chunks of rows in parallel."""
