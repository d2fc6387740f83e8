"""Looks at objects and answers passed, waiting, failed or unknown, and says why. Pure: what was read is an argument.

`evaluate.evaluate` answers a probe, `verdict.gate_verdict` counts passes in a row. Nothing here asks a cluster, knows a
clock or names a phase.
"""
