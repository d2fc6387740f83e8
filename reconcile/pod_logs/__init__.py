"""Reads the logs of a plan's pods through the API server, and keeps them in a folder of bounded size.

Nothing waits for logs: what cannot be read is noted, and an upgrade goes on without it. Secrets are hidden before a
line is kept or shown.
"""
