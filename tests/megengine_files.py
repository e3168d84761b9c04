"""Small files as MegEngine's profilers write them, for tests."""

import json

GPU = 'CompNode("gpu0:0" from "xpux:0")'


def times(start, kern, end):
    return {"start": start, "kern": kern, "end": end}


def op(number, name, kind, inputs=(), **more):
    return {
        "node_type": "operator", "id": str(number), "name": name, "type": kind, "input": [str(one) for one in inputs],
        "output": [str(number + 1)], "extra": {}, "waiting_spec": None, **more,
    }  # fmt: skip


def var(number, dtype="Float32", shape=(1, 3)):
    plan = {
        "mem_chunk_id": f"chk{number}",
        "offset_byte": 0,
        "layout": {"shape": list(shape), "stride": [3, 1], "dtype": dtype},
    }
    return {"id": str(number), "name": f"v{number}", "comp_node": GPU, "mem_plan": plan, "flag": [], "dev_ptr": None}


def footprint(computation, memory, inner=((1, 3),), outer=((1, 3),), **more):
    return {
        "computation": computation, "memory": memory, "param": {}, "in_shapes": [list(one) for one in inner],
        "out_shapes": [list(one) for one in outer], **more,
    }  # fmt: skip


def profile():
    """Four operators: two convolutions of one type (4 and 6 us), a Reshape without computation, a Copy."""
    operators = {
        "2": op(2, "conv(a)[2]", "ConvolutionForward", (1,)),
        "4": op(4, "conv(b)[4]", "ConvolutionForward", (3,)),
        "6": op(6, "reshape[6]", "Reshape", (5,)),
        "8": op(8, "copy[8]", "Copy", (7,)),
        "100": op(100, "const[100]", "SharedDeviceTensor"),
    }
    device = {
        "2": {GPU: times(0.0, 1e-6, 4e-6)},
        "4": {GPU: times(4e-6, 4e-6, 10e-6)},
        "6": {GPU: times(10e-6, 10e-6, 11e-6)},
        "8": {GPU: times(11e-6, 12e-6, 13e-6)},
    }
    host = {key: {"worker": times(0.0, -1 if key == "6" else 1e-7, 5e-7)} for key in device}
    footprints = {
        "2": footprint(4000, 1024), "4": footprint(9000, 4096), "6": footprint(None, 12, ((2, 3),), ((6,),)),
        "8": footprint(None, None, ((6,),), ((6,),), in_layouts=[[2]]),
    }  # fmt: skip
    variables = {str(number): var(number, "Int8" if number == 3 else "Float32") for number in (1, 3, 5, 7)}
    return {
        "profiler": {"device": device, "host": host, "opr_footprint": footprints, "opr_internal_pf": {}},
        "graph_exec": {
            "comp_seq": ["2", "4", "6", "8"], "operator": operators, "var": variables,
            "mem_chunk": {"chk1": {"id": "chk1", "size": 12, "owner_var": "1", "dev_ptr": None}},
        },
    }  # fmt: skip


def write(path, content, **how):
    path.write_text(json.dumps(content, **how), encoding="utf-8")
    return path
