"""What laws need to know of a log before a stretch of it, so that they can judge that alone."""
