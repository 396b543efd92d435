"""Released migrations; none of them imports live code."""
