"""Searches for what is arithmetic or stands in the plan's own record, each module for one kind of trouble. Pure."""
