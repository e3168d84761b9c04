"""Small profiles of XLA for tests: an XSpace, written by hand."""


def varint(value):
    """A number; negative ones as of 64 bits."""
    value &= (1 << 64) - 1
    parts = bytearray()
    while value >= 128:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes(parts) + bytes([value])


def message(*fields):
    """Fields as (number, value): numbers, texts, or messages."""
    parts = []
    for number, value in fields:
        if isinstance(value, int):
            parts.append(varint(number << 3) + varint(value))
        else:
            data = value.encode() if isinstance(value, str) else value
            parts.append(varint(number << 3 | 2) + varint(len(data)) + data)
    return b"".join(parts)


def plane(name, lines, *, shown=()):
    """Lines as {name: [(event, start in ns, length in ns, stats)]}; stats are {name: number}; `shown`: shorter names."""
    events, stats, written = {}, {}, []
    for number, (line, found) in enumerate(lines.items()):
        fields = [(1, number), (2, line), (3, 1_000)]
        for event, start, length, *more in found:
            values = more[0] if more else {}
            fields.append((4, message(
                (1, events.setdefault(event, len(events) + 1)), (2, start * 1000), (3, length * 1000),
                *((4, message((1, stats.setdefault(stat, len(stats) + 1)), (4, value))) for stat, value in values.items()),
            )))  # fmt: skip
        written.append((3, message(*fields)))
    shorter = dict(shown)
    metas = [
        (4, message((1, number), (2, message((1, number), (2, event), *([(4, shorter[event])] if event in shorter else [])))))
        for event, number in events.items()
    ]  # fmt: skip
    kinds = [(5, message((1, number), (2, message((1, number), (2, stat))))) for stat, number in stats.items()]
    return message((1, 3), (2, name), *written, *metas, *kinds)


def space(*planes, host="here"):
    """A whole file."""
    return message(*((1, one) for one in planes), (4, host))


def training():
    """Three steps of a device, 16 ms long and 19 ms apart, and a host that is ahead of it."""
    ms = 1_000_000
    long = "%fusion.1 = f32[8]{0} fusion(f32[8]{0} %p)"
    device = {
        "Steps": [(f"{n}", 19 * n * ms, 16 * ms) for n in range(3)],
        "XLA Modules": [("jit_train(7)", 19 * n * ms, 16 * ms) for n in range(3)],
        "XLA Ops": [(long, 19 * n * ms, 15 * ms, {"program_id": 7}) for n in range(3)],
    }
    host = {
        "python": [("train", n * ms, ms, {"_r": 1, "step_num": n}) for n in range(3)]
        + [("$train.py:3 main", 0, 60 * ms)],
    }
    shown = {long: "fusion.1"}
    return space(
        plane("/host:metadata", {}), plane("/host:CPU", host), plane("/device:TPU:0", device, shown=shown.items())
    )


def write_profile(folder):
    """A folder with a profile."""
    folder.mkdir()
    folder.joinpath("here.xplane.pb").write_bytes(training())
    return folder
