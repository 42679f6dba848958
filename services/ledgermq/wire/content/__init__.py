"""The content of a message: bodies, objects, typed values, its header."""
