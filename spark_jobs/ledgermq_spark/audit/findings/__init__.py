"""Findings: names differences, drops those that follow from others, and says of which messages."""
