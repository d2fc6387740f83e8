"""RenderedPlan + cluster -> progress: a pure core around one cluster door."""
