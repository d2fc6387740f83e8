"""The pure half: (plan, release, facts, templates) -> RenderedPlan, and its layouts.

Never imports `reconcile`. Only `renderer.files` touches disk or network.
"""
