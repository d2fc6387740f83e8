"""The real engines of Flux and Argo CD beside the real control plane: built once from their Go modules, then fed.

Fleet's engine is not to be had as a module: its path goes through the real helm, with a model of what Fleet adds.
"""
