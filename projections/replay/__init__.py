"""What a log says of any moment and any cause.

Everything here reads ``Recorded`` events grouped by job and in order of version, up to one moment,
and lines of the audit log.  Where they come from, a database or a file, is somebody else's
business.  Spans of time are integer microseconds, so that sums are exact.
"""
