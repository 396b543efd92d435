"""What touches the world: stores, workers, the command line."""
