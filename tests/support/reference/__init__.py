"""Writes docs/reference: one page a subject, from the schemas, the catalogues beside them, the code's tables and the
command line. Nothing here is written by hand twice: what a page says of a key is the description in its schema."""
