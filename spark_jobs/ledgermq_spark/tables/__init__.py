"""Tables of what happened: plain queries over what the fold states of each move."""
