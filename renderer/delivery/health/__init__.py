"""One health table, four outputs: the readiness rules of `_kinds`, which our own probes evaluate, as Lua for Argo CD,
as CEL for Flux and as settings for Fleet.

Pure text from data. An agent judges one object at a time; what only other objects tell is left to a gate's Job.
"""
