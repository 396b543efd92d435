"""Examples that run: the application of the demo, and how to embed the domain."""
