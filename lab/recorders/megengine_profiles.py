"""Profiles of small networks by MegEngine itself, and what its profile_analyze prints of them: `megengine_profiles.py FOLDER`.

`profiles/convolutions.json` and `profiles/convolutions_fused.json` are GraphProfiler's; the others are the first one
changed, for what a CPU does not write: a GPU's compute node, no device times, times of 0, a NaN as text, integers as input.
`oracle/manifest.json` has each call with its exit code, `oracle/NAME/NNN.txt` its output. NumPy below 1.24.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import sys
from pathlib import Path

CALLS = [
    "", "-t 1", "-t 5", "-t 0", "-t 1000", "--print-only summary", "--print-only device", "--print-only host", "--show-host",
    "--top-end-key kern", "--aggregate-by type --aggregate max -t 5", "--aggregate-by type --aggregate min -t 5",
    "--aggregate-by type --aggregate sum -t 0", "--aggregate sum", "--aggregate mean --top-end-key kern", "--aggregate max",
    "--aggregate-by type", "--order-by memory", "--order-by +memory -t 0", "--order-by +flops", "--order-by computation",
    "--order-by +bandwidth -t 5", "--order-by opr_id -t 4", "--order-by +out_shapes -t 4", "--order-by name",
    "--order-by ++time", "--type ConvolutionForward", "--type ConvolutionForward --type Elemwise -t 6", "--type NoSuchType",
    "--opr-name conv.* -t 4", "--opr-name ADD -t 4", "--opr-name [", "--opr-name nomatch",
    "--opr-name conv.* --order-by memory --min-time 1e-6 -t 5", "--min-time 1e-5 -t 0", "--max-time 1e-5 -t 0",
    "--min-time 1000", "--min-time 1e-6 --show-host", "--input-dtype Float32 -t 3", "--input-dtype Int8 -t 0",
    "--dump-only-opr -t 5 --print-only device",
    "--type ConvolutionForward --print-only summary",
]  # fmt: skip
SHORT = ["", "-t 5", "--print-only host", "--order-by memory -t 3", "--aggregate-by type --aggregate sum -t 5"]


def networks():
    """(name, options of the optimizer for inference) of each profile."""
    return {"convolutions": None, "convolutions_fused": {"enable_fuse_conv_bias_nonlinearity": True}}


def profile(options):
    import megengine as mge
    import megengine.functional as F  # noqa: N812 - as its users write it
    import megengine.utils.comp_graph_tools as tools
    import numpy as np
    from megengine import jit
    from megengine import module as nn
    from megengine.core.tensor import megbrain_graph as graphs

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.first, self.second = (nn.Conv2d(width, width, 3, padding=1) for _ in range(2))

        def forward(self, x):
            return F.relu(self.second(F.relu(self.first(x))) + x)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.blocks = (
                nn.Conv2d(3, 8, 3, stride=2, padding=1),
                nn.Sequential(*(Block(8) for _ in range(3))),
            )
            self.head = nn.Linear(8, 10)

        def forward(self, x):
            x = self.blocks(F.max_pool2d(F.relu(self.stem(x)), 2))
            return F.softmax(self.head(F.avg_pool2d(x, 8).reshape(x.shape[0], -1)))

    np.random.seed(3)  # noqa: NPY002 - it is MegEngine that draws
    network = Network()
    network.eval()
    traced = jit.trace(lambda x: network(x), symbolic=True, capture_as_const=True)  # noqa: PLW0108 - it needs a function
    data = mge.Tensor(np.random.default_rng(3).random((2, 3, 32, 32), dtype=np.float32))
    traced(data)
    path = Path("network.mge")
    traced.dump(str(path), arg_names=["data"], optimize_for_inference=False)
    loaded = graphs.load_graph(str(path))
    path.unlink()
    graph, outputs = loaded.graph, loaded.output_vars_list
    graph.options.graph_opt_level = 0
    if options:
        outputs, _ = graphs.optimize_for_inference(outputs, **options)
    outputs, inputs = tools.convert_inputs(outputs, inputs=tools.get_dep_vars(outputs, "Host2DeviceCopy"))
    outputs, results = tools.convert_outputs(outputs)
    profiler = tools.GraphProfiler(graph)
    function = graph.compile(outputs)
    for _ in range(3):
        for node in inputs.values():
            node.set_value(data._dev_tensor())
        function.execute()
        function.wait()
        for node in results.values():
            node.get_value().numpy()
    return json.loads(profiler.get())


def renamed(content, before, after):
    return json.loads(json.dumps(content).replace(before, after))


def variants(base):
    """name -> profile, each the measured one with one thing changed."""
    sides = base["profiler"]
    node = next(iter(next(iter(sides["device"].values()))))
    found = {"gpu": renamed(base, json.dumps(node)[1:-1], json.dumps('CompNode("gpu0:0" from "xpux:0")')[1:-1])}
    alone = found["host_only"] = copy.deepcopy(base)
    alone["profiler"]["device"] = {}
    zero = found["zero_device"] = copy.deepcopy(base)
    for nodes in zero["profiler"]["device"].values():
        for times in nodes.values():
            times.update(start=0.0, kern=0.0, end=0.0)
    text = found["string_nan"] = copy.deepcopy(base)
    for nodes in text["profiler"]["device"].values():
        for times in nodes.values():
            times["kern"] = "nan"
    small = found["int8"] = copy.deepcopy(base)
    for number, var in enumerate(small["graph_exec"]["var"].values()):
        if number % 2 and var["mem_plan"]:
            var["mem_plan"]["layout"]["dtype"] = "Int8"
    memory = {"name": "cpu0:0_alloc_mem", "ph": "C", "pid": 1, "tid": 0, "ts": 0.0, "args": {"value": 1024}}
    found["chrome_dict"] = {"traceEvents": [memory], "metadata": {"localTime": "1625027241000000000"}}
    return found


def ask(path, args):
    """(exit code, output, last line of the error) of a call of its command line."""
    from megengine.tools.profile_analyze import main as analyze

    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            analyze([str(path), *args.split()])
    except SystemExit as stop:
        return int(stop.code or 0), out.getvalue(), ""
    except Exception as error:  # noqa: BLE001 - as it stands in its traceback
        return 1, out.getvalue(), f"{type(error).__name__}: {error}"
    return 0, out.getvalue(), ""


def main():
    folder = Path(sys.argv[1])
    made = {name: profile(options) for name, options in networks().items()}
    made |= variants(made["convolutions"])
    manifest = []
    for name, content in made.items():
        path = folder / "profiles" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content), encoding="utf-8")
        for number, args in enumerate(CALLS if name.startswith("conv") else SHORT):
            code, out, error = ask(path, args)
            place = folder / "oracle" / name / f"{number:03d}.txt"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(out, encoding="utf-8")
            manifest.append({"file": f"{name}/{place.name}", "profile": f"profiles/{name}.json", "args": args, "rc": code,
                             "error": error})  # fmt: skip
    (folder / "oracle" / "manifest.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
