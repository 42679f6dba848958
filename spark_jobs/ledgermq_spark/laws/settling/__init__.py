"""Settling: what operations consume and return, and what administration does by hand."""
