"""What a stretch of a log is judged with, of all that went before it."""
