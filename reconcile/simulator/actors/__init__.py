"""Harvester, Rancher, KubeVirt, Longhorn and the nodes, simulated through the cluster Protocol.

Actors poll. They know the Protocol and the content of objects, but neither the loop nor its decisions, so that a
mistake of the loop shows. No actor sleeps or reads a clock: the caller passes the time. Each module's docstring says
what of its behaviour was verified, and against what.
"""
