"""Puts that come twice: what destinations remember of deduplication ids."""
