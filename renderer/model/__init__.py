"""Values: refs, probes, phases, node states, rendered plans, types of documents. No behaviour beyond look-ups."""
