"""Core values to plotly figures; pure functions."""
