"""What questions are answered with: each status once, for the fold and for the client."""
