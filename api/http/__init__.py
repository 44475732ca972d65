"""The API over HTTP: its routes and what each may be asked with, its errors and its metrics."""
