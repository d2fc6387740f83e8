"""Fields of somebody else's objects: what to record, what to write, what to put back. Pure: bodies in, patches out.

Borrowed fields are written by merge patch and not by server-side apply: an apply that leaves a field out later removes
it instead of restoring it, and a forced one takes the field from its owner (seen on kube-apiserver 1.35.4).
"""
