"""The pure core: operations, outcomes and the fold that turns the ones into the others."""
