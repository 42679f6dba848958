"""Law M: which operations are refused, and why, as PROTOCOL.md lists it page by page."""
