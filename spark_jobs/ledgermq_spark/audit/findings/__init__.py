"""Findings: what a difference is called, which of them are told, and the messages they name."""
