"""Audits behind a state: what a log that was trimmed has left, and what came since the last."""
