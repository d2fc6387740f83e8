"""The helpers that an upgrade's Jobs call: they stop virtual machines that cannot be moved, start them again, and guard
versions. Their command lines, exit codes, events and messages are those of Harvester's upgrade toolkit.

Each works once over a `Cluster`, as its Job does; what it says on the way goes to a function. Nothing here knows a
clock: time and pauses are arguments.
"""
