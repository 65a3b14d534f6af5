"""The little of PostgreSQL's protocol that an attack needs: messages are built and sent by
hand, so that a client can stop in the middle, read nothing, or announce what never comes."""

import socket
import struct


class Gone(Exception):
    """The server closed the connection."""


class Refused(Exception):
    """An ErrorResponse: its SQLSTATE and text."""

    def __init__(self, sqlstate, text):
        super().__init__(f"{sqlstate} {text}")
        self.sqlstate = sqlstate


def message(tag, body):
    return tag + struct.pack("!i", len(body) + 4) + body


def text(value):
    return value.encode() + b"\0"


class Client:
    def __init__(self, port, user="postgres", timeout=60):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.buffer = bytearray()
        pairs = b"user\0" + text(user) + b"database\0postgres\0\0"
        self.socket.sendall(struct.pack("!ii", len(pairs) + 8, 196608) + pairs)
        self.until_ready()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def read_message(self):
        while len(self.buffer) < 5:
            self._fill()
        length = struct.unpack_from("!i", self.buffer, 1)[0]
        while len(self.buffer) < length + 1:
            self._fill()
        tag = bytes(self.buffer[:1])
        body = bytes(self.buffer[5 : length + 1])
        del self.buffer[: length + 1]
        return tag, body

    def _fill(self):
        got = self.socket.recv(1 << 16)
        if not got:
            raise Gone()
        self.buffer += got

    def until_ready(self):
        """Reads to ReadyForQuery: the rows and the error, if there was one."""
        rows, error = [], None
        while True:
            tag, body = self.read_message()
            if tag == b"D":
                rows.append(body)
            elif tag == b"G":  # CopyIn: nothing comes.
                self.send(message(b"f", b"nothing\0"))
            elif tag == b"E":
                fields = dict((part[:1], part[1:].decode(errors="replace")) for part in body.split(b"\0") if part)
                error = Refused(fields.get(b"C", "?????"), fields.get(b"M", ""))
                if fields.get(b"S") == "FATAL":
                    raise error
            elif tag == b"Z":
                return rows, error

    def ask(self, sql):
        """Runs a simple query; raises what the server refuses."""
        self.send(message(b"Q", text(sql)))
        rows, error = self.until_ready()
        if error:
            raise error
        return rows

    def try_(self, sql):
        """Runs a simple query; the SQLSTATE it was refused with, or None."""
        self.send(message(b"Q", text(sql)))
        return getattr(self.until_ready()[1], "sqlstate", None)

    def prepare(self, name, sql):
        self.send(message(b"P", text(name) + text(sql) + struct.pack("!h", 0)) + message(b"S", b""))
        return getattr(self.until_ready()[1], "sqlstate", None)

    def bind(self, portal, statement, values):
        body = text(portal) + text(statement) + struct.pack("!hh", 0, len(values) % 65536 if len(values) < 32768 else len(values) - 65536)
        body += b"".join(struct.pack("!i", len(value)) + value for value in values) + struct.pack("!h", 0)
        return message(b"B", body)

    def execute(self, portal, rows=0):
        return message(b"E", text(portal) + struct.pack("!i", rows))
