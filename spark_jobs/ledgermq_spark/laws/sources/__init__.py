"""What destinations take of sources: other logs that puts were made of."""
