"""Loads what the template tree declares: kinds, values and phases. Reads text that it is given; never the disk."""
