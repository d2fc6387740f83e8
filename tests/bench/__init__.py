"""Times and memory of whole commands, beside others' of the same kind; `make bench` runs it, pytest does not.

A bench is a row of `BENCHES` in `bench.__main__`: a function that measures and yields lines of the table.
"""
