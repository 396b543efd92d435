"""What would have been: recorded arrivals, run times and failures under another policy.

``reading`` takes a log for a ``history``, ``world`` runs it through the machine of the domain, and
``measures`` compares what came of it.  The same history and policy always give the same world.
"""
