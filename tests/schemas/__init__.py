"""Scripts that make files of `schemas/` from development dependencies; nothing here runs in the product."""
