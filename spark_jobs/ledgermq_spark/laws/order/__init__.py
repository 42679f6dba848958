"""Law F: who gets which message of a store when, judged in one pass over what happens to it."""
