"""A cluster in memory, everybody who acts on a Harvester cluster, and rehearsals on both.

Only the command line and tests import it.
"""
