"""Fields of somebody else's objects: what to record, what to write, what to put back. Pure: bodies in, patches out.

Why merge patches and not server-side apply: `spec/stack.md` §6, measured on kube-apiserver 1.35.4.
"""
