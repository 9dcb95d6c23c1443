"""A SOCKS proxy as a process: ``python socks_server.py PORT``; it resolves names as its machine does."""

import socket
import sys
import time

from tests.transport.servers import SocksServer


class Resolving(SocksServer):
    """Goes to the address that it is asked for."""

    def onward(self, host: bytes, port: int) -> tuple[str, int]:
        return socket.gethostbyname(host.decode()), port


if __name__ == "__main__":
    with Resolving(0, listen=int(sys.argv[1])):
        print("ready", flush=True)
        while True:
            time.sleep(3600)
