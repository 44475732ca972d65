"""The servers of the one-machine default: no Docker, no service, one data directory."""
