"""Consumers, browsers and requestors, and the options of a get."""
