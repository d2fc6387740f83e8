"""What the tests of the cluster door share: kinds, a server that behaves badly on demand, and case files."""
