"""Reads what a decision needs, before it is made. All reads of a round are here, and none of them writes."""
