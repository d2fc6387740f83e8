"""Finds why an upgrade waits or has failed: one engine for a live plan, the loop, files and support bundles.

Causes are data in `diagnosis/` of the template tree. Pure: everything is seen through a `Look`.
"""
