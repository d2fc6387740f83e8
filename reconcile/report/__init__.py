"""Report the progress of a plan as a model for people and machines. Pure: from what a round saw to values and lines."""
