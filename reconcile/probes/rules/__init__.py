"""The named rules: what the probe language cannot say, because it takes arithmetic or several objects.

`renderer.catalog.rules` says what they are called and what they take; `table` has one row for each.
"""
