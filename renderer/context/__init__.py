"""The names that templates and expressions see. Pure; it knows no phase."""
