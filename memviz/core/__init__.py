"""What memviz knows without torch: traces, plans, timelines, runs and the arithmetic between them."""
