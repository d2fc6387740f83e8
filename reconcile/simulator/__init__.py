"""A cluster in memory, the components that act on a Harvester cluster, and rehearsals on both.

Only the command line and tests import it.
"""
