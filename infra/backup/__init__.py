"""Backups: the archive of a log, the receipts of what was erased, and the copies that a folder keeps."""
