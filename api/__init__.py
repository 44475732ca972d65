"""The API: commands in, queries out, over a socket or HTTP."""
