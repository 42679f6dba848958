"""The demo: the main job on real input, with a crash in the middle and an audit at the end."""
