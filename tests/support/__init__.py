"""What several test modules share: helpers that are no tests themselves."""
