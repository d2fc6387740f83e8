"""The words of DESIGN as values: refs, probes, phases, rendered plans. No behaviour beyond reading themselves."""
