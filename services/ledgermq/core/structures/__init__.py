"""Ordered containers that know only priority and sequence number; no rule of the protocol."""
