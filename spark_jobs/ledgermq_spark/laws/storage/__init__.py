"""Storage: the room of messages in segments, and where their bodies stand."""
