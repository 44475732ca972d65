"""From what clients write down to events: one small parser per transcript format, and one for hook payloads.

`files.discover` finds transcripts, `sniff.sniff` returns their format, `reading.Transcript` reads one as a stream of
`Parsed` lines, and `hooks.parse_hook` reads one hook delivery. Parsers give whole texts as the client wrote them;
`memctl.infra.redaction.prepare` cleans, redacts and caps every event before it is stored.
"""
