"""Small programs that use leasebook."""
