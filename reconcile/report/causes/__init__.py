"""Finds why an upgrade waits, by what blocks it: each module looks at one kind of trouble. Pure, over objects read
before."""
