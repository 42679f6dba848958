"""Law D: what settlements, and operations of administrators, consume and return."""
