"""The fold inside Spark, and checkpoints; the only folder that imports the core."""
