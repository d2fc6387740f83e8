"""Makes what a release consists of: wheel, sdist, container image, chart, manifests, bill of materials, checksums.

Not part of the product: `make image` and `make release` run it from a clone, with what requirements-dev.txt pins.
Nothing is published from here. Everything is made twice to the same bytes: times are those of the commit, orders are
sorted.
"""
