"""How commands print and how they end."""
