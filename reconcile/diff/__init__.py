"""Show what applying would change, as text and JSON. Pure: dry runs come in as values."""
