"""What stands around a hook: the spool it may leave a delivery in, what is not captured, and the settings of
clients."""
