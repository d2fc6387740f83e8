"""Many clusters: which of them go when, the plan of each, and what agents are given for all of them.

Pure: documents and what was rendered for each cluster in, files out. It renders no cluster and names no phase.
"""
