"""The plan's status: reading it, and the pure changes that are made to it. The API's fields plus our additive ones."""
