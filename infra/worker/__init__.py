"""Leases jobs and runs their handlers."""
