"""One function for each SQL statement."""
