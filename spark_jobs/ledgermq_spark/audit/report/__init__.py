"""The report of an audit: as JSON, as a page, and as a table of findings."""
