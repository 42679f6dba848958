"""Bytes to and from Kafka, and the threads that carry them."""
