"""Messages as applications make and get them, and their typed bodies and properties."""
