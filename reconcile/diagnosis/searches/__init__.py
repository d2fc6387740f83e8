"""Searches for causes that take arithmetic or the plan's own record, each module for one kind of trouble. Pure."""
