"""The manager's own manifests on a cluster: applied, found again by their labels, removed.

What belongs to another release is never changed. It knows nothing of plans but whether one is under way.
"""
