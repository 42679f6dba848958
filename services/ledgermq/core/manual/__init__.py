"""What administrators do: to messages, sessions, the journal and the queue manager itself."""
