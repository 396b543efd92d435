"""Everything that is derived from the log: pure functions over events and jobs."""
