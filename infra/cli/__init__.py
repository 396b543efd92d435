"""The command ``leasebook``.  Commands compose the parts; they hold no rule.

What a worker starts lies here too, so that this file imports nothing.
"""
