"""Harvester's world, played through the cluster Protocol: who else acts on a cluster while it is upgraded.

Actors poll. They know the Protocol and what the objects say, but neither the loop nor its decisions: what the loop gets
wrong must show. No actor sleeps or asks for the time; whoever drives them says what time it is.
"""
