"""What one queue manager needs while its partition is here: folding, questions, duties."""
