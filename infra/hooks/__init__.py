"""What a hook delivers: payloads and their dialects, the spool, what is not captured, and the settings of clients.

The hook itself is `memctl.infra.hook`, a plain file that imports nothing from here.
"""
