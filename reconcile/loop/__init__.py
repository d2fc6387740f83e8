"""Observe, decide, act, record: the round that the in-cluster loop, the laptop and the rehearsal all run."""
