"""Reads what a decision looks at. All reads of a round are here, and none of them writes."""
