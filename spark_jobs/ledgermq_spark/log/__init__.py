"""Reading operations and outcomes of the log as typed rows."""
