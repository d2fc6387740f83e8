"""Carries out pre-flight checks: one evaluator for files, a live cluster, admission and each node. Pure.

`checking.run_checks` answers all checks of some times from a `Look`. Nothing here asks a cluster, knows a clock or
names a check.
"""
