"""Verbs for whoever runs memctl: processes, status, rebuilds, proofs, backups and keys."""
