"""A piece of history as one file that can be sent: a zip of a manifest and two compressed parts."""
