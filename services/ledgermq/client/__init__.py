"""The client: connections, sessions, producers, consumers, browsers, administration."""
