"""The worker process and the threads in it."""
