"""profile_analyze's printed tables as cells, and our rows in the same form."""

import re

INFO = "operator info"


def summary_of(text):
    """{title: value as printed} of the lines between two rules."""
    lines = text.splitlines()
    if lines and lines[0].startswith("---"):
        end = next(index for index, line in enumerate(lines[1:], 1) if line.startswith("---"))
        return dict(re.split(r"  +", line.strip(), maxsplit=1) for line in lines[1:end])
    return {}


def grids(text):
    """Each fancy grid as (head, rows): rows are {title: lines of the cell}."""
    found, head, block = [], None, []
    for line in text.splitlines():
        if line.startswith("╒"):
            head, rows, block = None, [], []
            found.append([None, rows])
        elif line.startswith("│"):
            block.append([cell.strip() for cell in line.strip("│").split("│")])
        elif line.startswith("╞"):
            head = block[0]
            found[-1][0] = head
            block = []
        elif line.startswith(("├", "╘")):
            if block:
                columns = [[cell for cell in column if cell] for column in zip(*block, strict=True)]
                found[-1][1].append(dict(zip(head, columns, strict=True)))
            block = []
    return found


def operator_of(row):
    """(name, type, id) or (type, count) of a printed row: lines that begin with `-  ` continue the one above."""
    lines = []
    for line in row[INFO]:
        if line.startswith("-  ") and lines:
            lines[-1] += line[3:]
        else:
            lines.append(line)
    return tuple(lines)


def our_operator(row, *, aggregated):
    return (row["type"], str(row["count"]), "N/A") if aggregated else (row["name"], row["type"], row["opr_id"])


def scaled(value, unit, base, suffix=""):
    """Two lines: the number with two decimals, and its unit; base 1000 or 1024."""
    if value is None:
        return ["N/A", unit + suffix]
    if base == 1024 and value < 1024:
        return [f"{value:.2f}", "byte" + suffix]
    power = 0
    while value >= base:
        value, power = value / base, power + 1
    prefix = ("", "K", "M", "G", "T", "P")[power]
    return [f"{value:.2f}", (f"{prefix}iB" if base == 1024 else prefix + unit) + suffix]


def shape_lines(shapes, strides=None):
    if shapes is None:
        return ["None"]
    return [
        "{" + ",".join(map(str, shape)) + "}" + (f" -[{','.join(map(str, step))}]" if step else "")
        for shape, step in zip(shapes, strides or [None] * len(shapes), strict=False)
    ]


def plain(cell):
    """A printed cell without what depends on the type of its number: 0.0 is 0; what is divided by no time is not known."""
    return {"0.0": "0", "inf": "N/A", "nan": "N/A"}.get(cell, cell)


def cells_of(row):
    """Our row's cells as printed, but for its position and running sums."""
    return {
        "time": [f"{row['self_ns'] / 1e9:.3g}", f"{row['share'] * 100:.1f}%"],
        "computation": scaled(row["computation"], "FLO", 1000), "FLOPS": scaled(row["flops"], "FLOPS", 1000),
        "memory": scaled(row["memory"], "byte", 1024), "bandwidth": scaled(row["bandwidth"], "byte", 1024, "/s"),
        "in_shapes": shape_lines(row["in_shapes"], row["in_strides"]), "out_shapes": shape_lines(row["out_shapes"]),
    }  # fmt: skip
