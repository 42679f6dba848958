"""Connections, sessions, consumers and units of work: opened, numbered, ended."""
