"""The manager's metrics for Prometheus: their table, their figures, and the port at which they are served.

It looks at what the loop and the webhook have; neither knows it, and nothing is decided or written here.
"""
