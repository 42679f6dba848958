"""Records as bytes: schemas, codec, headers, and the forms of answers and checkpoints."""
