"""Forgetting as a person asks for it, and what is done to disks afterwards."""
