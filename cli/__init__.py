"""The `memctl` command: parse, call the door, print."""
