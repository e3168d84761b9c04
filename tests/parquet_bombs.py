"""Small Parquet files that unpack to much more: by their pages, by what rows share, with a footer that lies.

They are larger than SMALL MiB, which tests set as the limit: real ones of gigabytes take long to make.
"""

import io

import pyarrow as pa
import pyarrow.parquet as pq

MIB = 1 << 20
SMALL = 32


def table_bytes(columns, **words):
    """Columns as a Parquet file."""
    out = io.BytesIO()
    pq.write_table(pa.table(dict(columns)), out, **{"compression": "zstd", "write_statistics": False, **words})
    return out.getvalue()


def one_page(codec, mib=80):
    """One page of text that is the same all the way."""
    rows = mib // 10
    columns = {"metric": ["x" * (10 * MIB)] * rows, "kind": ["a"] * rows, "start_ns": range(rows)}
    return table_bytes(columns, compression=codec, use_dictionary=False, data_page_size=1 << 30)


def shared_begins():
    """Each text is the one before it and nothing more."""
    columns = {"metric": ["y" * MIB] * 40, "kind": ["y" * MIB] * 40, "start_ns": range(40)}
    encoding = {"metric": "DELTA_BYTE_ARRAY", "kind": "DELTA_BYTE_ARRAY"}
    return table_bytes(columns, use_dictionary=False, column_encoding=encoding)


def many_columns():
    """Two hundred columns of one number."""
    rows = pa.array([7] * 50_000)
    return table_bytes({"start_ns": rows, **{f"c{number}": rows for number in range(200)}})


def lying(data):
    """The same file with a footer that says that each column has few bytes."""
    size = int.from_bytes(data[-8:-4], "little")
    body, footer = data[: -8 - size], data[-8 - size : -8]
    metadata = pq.ParquetFile(io.BytesIO(data)).metadata
    for number in range(metadata.num_row_groups):
        for at in range(metadata.row_group(number).num_columns):
            told = _varint(metadata.row_group(number).column(at).total_uncompressed_size)
            if len(told) > 2:
                footer = footer.replace(told, _varint(100)[:1].ljust(len(told) - 1, b"\x80") + b"\x00")
    return body + footer + data[-8:]


def _varint(number):
    """A number as Thrift's compact form has it."""
    number, out = number << 1, bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def shared_text(rows, size=MIB):
    """All rows have the same long text, which is there once."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["m" * size]))
    number = pa.array(range(rows))
    return table_bytes(
        {
            "metric": text,
            "kind": text,
            "rep": number,
            "order": number,
            "start_ns": number,
            "job": text,
            "value": pa.array([1.0] * rows),
        }
    )


BOMBS = {
    "one page, zstd": lambda: one_page("zstd"),
    "one page, gzip": lambda: one_page("gzip"),
    "one page, snappy": lambda: one_page("snappy"),
    "one page, brotli": lambda: one_page("brotli"),
    "one page, zstd, lying": lambda: lying(one_page("zstd")),
    "shared begins": shared_begins,
    "many columns": many_columns,
}
