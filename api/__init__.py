"""The doors: commands in, queries out, over a socket or HTTP."""
