"""The state as the plain records of a checkpoint, and back."""
