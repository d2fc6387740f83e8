"""How a plan stands, as a model for people and machines alike. Pure: from what a round saw to values and lines."""
