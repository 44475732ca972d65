"""The process that answers over HTTP: the application, who may ask, and how long it may take."""
