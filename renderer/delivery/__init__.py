"""Makes the files by which the agents that pull from Git deliver a rendered plan: Fleet, Argo CD and Flux.

Pure: from a rendered plan and options to files. It reads no cluster and no disk, and names no phase.
"""
