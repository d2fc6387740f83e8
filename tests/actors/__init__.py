"""The simulated controllers and nodes, each on its own and whole upgrades by hand."""
