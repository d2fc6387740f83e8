"""The one decision: (plan, rendering, what was seen, now) -> status, writes, events, waits. Pure; no I/O, no clock.

It knows steps, probes and occasions, and no phase by name.
"""
