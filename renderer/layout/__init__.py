"""A RenderedPlan as files: one tree for reviewers and pull agents, and its index. Nothing is read or written here."""
