"""The pure core, the fold: what the entries applied come to, through one door (`apply`)."""
