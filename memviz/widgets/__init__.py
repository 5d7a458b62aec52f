"""The explorer's views. They see core and figures, never torch."""
