"""Handing messages out, and every way in which they are settled, go back or leave."""
