"""The processor: the Faust worker that folds operations and writes outcomes."""
