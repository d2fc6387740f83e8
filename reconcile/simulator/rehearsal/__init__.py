"""The whole upgrade without a cluster: the user's own objects, the production loop, and simulated actors."""
