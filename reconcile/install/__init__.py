"""The manager's own manifests on a cluster: applied, found again by their labels, removed.

What belongs to another release is never changed. About plans it knows only whether one is in progress.
"""
