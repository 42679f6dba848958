"""Producers, groups and segments on their way out, and receipts for what was sent."""
