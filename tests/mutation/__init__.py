"""Changes the pure core in small ways, one at a time, and counts the changes that no test notices."""
