"""Renders: (catalog, templates, facts) -> RenderedPlan. Pure; all problems of a run are reported together."""
