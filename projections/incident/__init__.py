"""What went on in a window, as one page that needs nothing else: values, then HTML.

The page has no script and asks for nothing outside.  Whatever a log says of a job is escaped, and
no arguments, items or results of jobs are in it.
"""
