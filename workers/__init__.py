"""When folds and processors run: drain loop, leases, jobs, outbox, sweeper."""
