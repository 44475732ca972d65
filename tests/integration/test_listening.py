"""What a listening socket accepts sends at once."""

from __future__ import annotations

import select
import socket

from memctl.infra.listening import tcp_listener


def test_what_is_accepted_waits_for_no_acknowledgement_before_it_sends_more() -> None:
    with tcp_listener("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname(), timeout=5):
        assert select.select([listener], [], [], 5)[0]
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
