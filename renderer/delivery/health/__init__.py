"""One health table, four outputs: the readiness rules of `_kinds`, which our own probes evaluate, as Lua for Argo CD,
as CEL for Flux and as settings for Fleet.

Pure text from data. An agent evaluates one object at a time; rules about several objects are left to a gate's Job.
"""
