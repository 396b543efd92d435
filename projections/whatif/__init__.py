"""What would have been: recorded arrivals, run times and failures under another policy.

``history`` reads a log, ``world`` runs it through the machine of the domain, ``measures`` compares
what came of it.  The same history and policy always give the same world.
"""
