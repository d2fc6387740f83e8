"""A RenderedPlan as files: one tree for reviewers and pull agents, and the index that explains it. No disk here."""
