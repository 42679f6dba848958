"""Laws of a queue manager's history, asked of what the log and the fold state."""
