"""What several test modules share: examples as rehearsals, small clusters, whole upgrades on a real API server."""
