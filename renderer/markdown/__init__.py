"""Markdown for pull requests and tickets. What is quoted stands there as text; no page is longer than a comment may be.

What a page is about, its callers say.
"""
