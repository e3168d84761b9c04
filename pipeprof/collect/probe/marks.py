"""Marks that wait to be written: fixed records of 26 bytes. The same as `Marks` of `_hooks.c`."""

import struct

# kind, flag, subject, sequence number, begin, end (ns of the monotonic clock); `<`: no padding, any machine
FIELDS = "BBIIqq"
MARK = struct.Struct("<" + FIELDS)
TOGETHER = 256  # marks that are packed by one call


class Marks:
    """What a recorder derives from: it keeps marks, and has them flushed where the last time is too long ago."""

    _flushed = _unwritten_ns = 0

    def __init__(self):
        self._values = []  # of the marks, one after the other: no tuples, which the garbage collector would count

    def mark(self, kind, flag, subject, number, begin, end):
        """Record one interval. It is packed when it is written: here, code that is not in the caches costs most."""
        self._values.extend((kind, flag, subject, number, begin, end))
        if end - self._flushed > self._unwritten_ns:
            self.flush()

    def flush(self):
        """Write what is pending."""
        raise NotImplementedError

    @property
    def _unpacked(self):
        return len(self._values) // len(FIELDS)

    def _taken(self):
        """The marks since the last time, as they are written."""
        values, width, count = self._values, len(FIELDS), len(self._values)
        parts = []
        for at in range(0, count, width * TOGETHER):
            some = values[at : min(count, at + width * TOGETHER)]
            try:
                parts.append(struct.pack("<" + FIELDS * (len(some) // width), *some))
            except struct.error:
                parts += [_wrapped(*some[one : one + width]) for one in range(0, len(some), width)]
        del values[:count]
        return b"".join(parts)


def _wrapped(kind, flag, subject, number, begin, end):
    return MARK.pack(kind, flag, subject & 0xFFFFFFFF, number & 0xFFFFFFFF, begin, end)
