"""From what clients write down to events: one small parser per transcript format.

`files.discover` finds transcripts, `sniff.sniff` returns their format, and `reading.Transcript` reads one as a stream
of `Parsed` lines. `memctl.infra.hooks.payloads` reads what hooks deliver. Parsers give whole texts as the client wrote
them; `memctl.infra.redaction.prepare` cleans, redacts and caps every event before it is stored.
"""
