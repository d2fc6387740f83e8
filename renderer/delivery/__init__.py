"""How a rendered plan is delivered by the agents that pull from Git: Fleet, Argo CD and Flux.

Pure: from a rendered plan and options to files. It reads no cluster and no disk, and names no phase.
"""
