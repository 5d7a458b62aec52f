"""A run in a worker process, or in a thread for live objects: events out, cancel in."""
