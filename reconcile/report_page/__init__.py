"""Reports on a whole run of a plan: one model (schemas/report.json), and the page and the Markdown that are made of it.

Pure. A run is what a plan's record, a journal or a rehearsal says of it; nothing is looked at here.
"""
