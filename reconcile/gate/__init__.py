"""Waits for the gates of one phase, where agents deliver phases and no loop runs: what `upgradeplan gate` does.

It judges by the document that was rendered beside its Job, with the evaluator that the loop has. It reads, and writes
nothing to the cluster.
"""
