"""Writes to the cluster: what has been decided is carried out here, and nothing is decided."""
