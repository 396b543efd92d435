"""The book and what applications do with it."""
