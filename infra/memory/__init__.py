"""The store in memory, for the simulator and for users' tests."""
