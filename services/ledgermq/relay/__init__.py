"""Relays and bridges: messages go from one log to another, each exactly once."""
