"""A real Kubernetes control plane on loopback for tests: build it, start it, look at it, take it down.

Needs Linux and nothing but the standard library and PyYAML. Knows nothing of the product but where its CRDs are.
"""
