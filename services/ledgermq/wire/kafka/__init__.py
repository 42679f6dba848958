"""Kafka's clients: their options, the errors that last, and the rights that each role needs."""
