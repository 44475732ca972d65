"""What an agent gets while it works: memory at a hook, and guidance when it asks."""
