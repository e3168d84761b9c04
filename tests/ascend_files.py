"""Small profiles of every generation, made here: sums that can be done in the head."""

import gzip
import json
import struct

EPOCH_US = 1_700_000_000_000_000
BASE = 45_000_000_000  # of the device's counter, ticks


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8", newline="")
    return path


def step_trace_text(steps=3, *, new=False, end="\n"):
    """Steps of 1000 ticks: 200 wait, 500 forward and backward, 300 tail; an event of 100 in the tail, none in step 2."""
    names = ["stream_5_0_AllReduce-op1"] if new else ["stream_5_parallel_0"]
    event = [f"{n}{part}" for n in names for part in (("", "_start_point", "_end_point") if new else
                                                       ("_start_point", "_end_point", ""))]  # fmt: skip
    head = ["step_num", "start_point", "end_point", "total", "fp_point", "bp_point", "iteration_interval", "fp_and_bp",
            "tail"]  # fmt: skip
    lines = [",".join(head + event)]
    for number in range(1, steps + 1):
        start = BASE + 1000 * (number - 1) + (200 if number == 1 else 0)
        fp, stop = BASE + 1000 * (number - 1) + 200, BASE + 1000 * number
        values = [number, start, stop, stop - start, fp, fp + 500, fp - start, 500, 300]
        moved = [0, 0, 0] if number == 2 else [fp + 550, fp + 650, 100]
        values += [moved[2], *moved[:2]] if new else moved
        lines.append(",".join(map(str, values)))
    lines.append("-," + ",".join(["7"] * (len(head + event) - 1)))
    return end.join(lines) + end


def write_graph(folder, rank=0, steps=3, *, new=False):
    """The old profiler's folder of one rank."""
    ms = BASE // 100_000  # of the counter
    write(folder / f"step_trace_raw_{rank}_detail_time.csv", step_trace_text(steps, new=new))
    write(folder / f"step_trace_point_info_{rank}.json", '{"fp_start": "Default/A-op1", "bp_end": "Default/B-op2"}')
    write(folder / f"aicore_intermediate_{rank}_type.csv",
          "kernel_type,total_time,execution_frequency,percent\nMatMul,3.0,6,75\nCast,1.0,4,25\n")  # fmt: skip
    write(folder / f"aicore_intermediate_{rank}_detail.csv",
          "full_kernel_name,execution_time,execution_frequency\nDefault/network/MatMul-op1,0.5,6\n")  # fmt: skip
    write(folder / f"aicpu_intermediate_{rank}.csv",
          "serial_number,kernel_type,total_time,dispatch_time,execution_time,run_start,run_end\n"
          f"1,GetNext,0.9,0.1,0.2,{ms}000,{ms}100\n")  # fmt: skip
    write(folder / f"framework_raw_{rank}.csv",
          "task_id,stream_id,block_dim,full_op_name,op_name,op_type,subgraph,op_info\n"
          '1,5,1,Default/network/MatMul-op1,MatMul-op1,MatMul,Default,"{""input_0"": {""format"": ""ND"", '
          '""data_type"": ""NUMBER_TYPE_FLOAT16"", ""shape"": ""2,3""}}"\n')  # fmt: skip
    write(
        folder / f"output_timeline_data_{rank}.txt",
        f"op_name, stream_id, start_time(ms), duration(ms)\nDefault/network/MatMul-op1,5,{ms}.01250,0.0005\n",
    )
    links = '{""0-1"": {""SDMA"": [0.002, 4.096, 2048000]}}'
    write(
        folder / f"hccl_raw_{rank}.csv",
        "step_num,communication_cost,wait_cost,link_info,communication_operator_cost\n"
        f'1,0.002,0.5,"{links}","{{""stream_5_0_AllReduce-op1"": [""1"", 0.002, 0.5, {links}]}}"\n-,1,1,"{{}}","{{}}"\n',
    )
    write(folder / f"ascend_cluster_analyse_pipeline-parallel_2_4_{rank}.csv",
          "computation_time, communication_alone_time, stage_time, receive_alone_time, "
          "collective_communication_alone_time\n4.0,2.0,5.0,1.0,1.0\n4.0,2.0,5.0,1.0,1.0\n9,9,9,9,9\n")  # fmt: skip
    return folder


def training_trace(steps=3, tag=1234):
    """The slice that `step_trace_text(new=False)` would come from, with events in every step but the second."""
    points = []
    for number in range(1, steps + 1):
        fp = BASE + 1000 * (number - 1) + 200
        points += [(tag, 0, fp - 10), (1, 0, fp), (2, 0, fp + 500)]
        points += [] if number == 2 else [(3, 5, fp + 550), (4, 5, fp + 650)]
        points += [(255, 0, BASE + 1000 * number)]
    return b"".join(struct.pack("<QHHQ", kind, 0, stream, at) for kind, stream, at in points)


def ts_track(steps=3, model=7, *, junk=True):
    """The newer records that the same steps would come from."""
    points = []
    for number in range(1, steps + 1):
        fp = BASE + 1000 * (number - 1) + 200
        points += [(0, 0, fp - 10), (2, 0, fp), (3, 0, fp + 500)]
        points += [] if number == 2 else [(10_000, 5, fp + 550), (10_001, 5, fp + 650)]
        points += [(1, 0, BASE + 1000 * number - 5), (4, 0, BASE + 1000 * number)]
    records = [(10, tag, stream, at) for tag, stream, at in points]
    if junk:  # other kinds of records, which are no steps
        records[1:1] = [(3, 2, 0, BASE), (9, 4, 0, BASE + 300)]
    return b"".join(
        struct.pack("<BBHIQQQHHHH", 1, kind, 40, 0, at, number, model, stream, 8, tag, 0)
        for number, (kind, tag, stream, at) in enumerate(records)
    )


def us(offset):
    """A time of the wall clock as these files have it."""
    return f"{EPOCH_US + offset}.250"


def trace_events():
    """One step of 100 us: 10 us for its batch; a kernel, a collective beside it, the parts as the profiler split them."""

    def event(name, pid, tid, at, dur, **more):
        return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": us(at), "dur": dur, **more}

    def named(what, pid, tid, name):
        return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}

    processes = enumerate(["Python", "CANN", "Ascend Hardware", "HCCL", "Overlap Analysis"], 1)
    return [
        event("aten::mm", 1, 7, 20, 5.5, cat="cpu_op", args={"Input Dims": "2,3;\r\n3,4", "deep": [{"a": "}, {"}, {}]}),
        event("ProfilerStep#7", 1, 7, 0, 100.0, cat="cpu_op"),
        event("enumerate(DataLoader)#It.__next__", 1, 7, 0, 10.0, cat="cpu_op"),
        *(named("process_name", pid, 0, name) for pid, name in processes),
        named("thread_name", 3, 2, "Stream 2"), named("thread_name", 4, 0, "Group 0 Communication"),
        named("thread_name", 4, 1, "Plane 0"),
        event("AscendCL@x", 2, 7, 25, 1.0),
        event("MatMul1", 3, 2, 30, 40.0, args={"Task Type": "AI_CORE"}),
        event("hcom_allReduce__586_0_1", 4, 0, 60, 20.125), event("Notify", 4, 1, 60, 1.0),
        event("Computing", 5, 0, 30, 40.0), event("Communication", 5, 1, 60, 20.125),
        event("Communication(Not Overlapped)", 5, 2, 70, 10.125), event("Free", 5, 3, 81, 9.875),
        {"ph": "C", "name": "HBM", "pid": 9, "tid": 0, "ts": us(1), "args": {"v": 1}},
        {"ph": "s", "name": "flow", "id": 2**63, "pid": 1, "tid": 7, "ts": us(1)},
    ]  # fmt: skip


def write_output(folder, rank=0, *, zipped=False):
    """ASCEND_PROFILER_OUTPUT of one rank, level 1."""
    here, end = folder / "ASCEND_PROFILER_OUTPUT", ".gz" if zipped else ""
    info = {"config": {"common_config": {"x": 1}}, "rank_id": rank}
    write(folder / f"profiler_info_{rank}.json", json.dumps(info, indent=1))
    write(here / f"trace_view.json{end}", json.dumps(trace_events()))
    write(here / f"kernel_details.csv{end}",
          "Step Id,Model ID,Task ID,Stream ID,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),"
          "Input Shapes,Output Shapes\n"
          f'7,1,1,2,MatMul1,MatMul,AI_CORE,{us(30)}\t,40.0,0,"""2,3;3,4""","""2,4"""\n'
          f"7,1,N/A,N/A,hcom_allReduce__586_0_1,hcom_allReduce_,HCCL,{us(60)}\t,20.125,N/A,N/A,N/A\n")  # fmt: skip
    write(
        here / f"step_trace_time.csv{end}",
        "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
        "Communication(Not Overlapped and Exclude Receive),Preparing\n7,40.0,10.125,10.0,20.125,9.875,60.0,0,10.125,3\n",
    )
    write(here / "op_statistic.csv",
          "OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)\n"
          "MatMul,AI_CORE,1,40.0,40.0,40.0,40.0,100\n")  # fmt: skip
    write(
        here / "api_statistic.csv",
        "Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance\nacl,aclX,10,4,2.5,1,4,0\n",
    )
    write(
        here / "operator_details.csv",
        "Name,Input Shapes,Call Stack,Host Self Duration(us),Host Total Duration(us),Device Self Duration(us),"
        'Device Total Duration(us)\naten::mm,"2,3;\r\n3,4","a;\r\nb",2,5.5,0,40\naten::mm,"2,3;\r\n3,4",c,1,1,0,0\n',
    )
    write(here / "memory_record.csv",
          "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),Stream Ptr,Device Type\n"
          f"PTA,{us(1)}\t,1.5,2,1.5,7,NPU:0\nAPP,{us(2)}\t,,3.5,,,NPU:0\n")  # fmt: skip
    write(here / "operator_memory.csv",
          "Name,Size(KB),Allocation Time(us),Release Time(us),Duration(us)\n"
          f"aten::mm,2,{us(20)}\t,{us(50)}\t,30\naten::mm,0.5,{us(21)}\t,,\n")  # fmt: skip
    op = "hcom_allReduce__586_0_1@99"
    cost = {
        f"{name} Time(ms)": value
        for name, value in (
            ("Elapse", 0.020125),
            ("Transit", 0.01),
            ("Wait", 0.008),
            ("Synchronization", 0.007),
            ("Idle", 0.002125),
        )
    }
    moved = {"HCCS": {"Transit Size(MB)": 2.0, "Transit Time(ms)": 0.01}, "RDMA": {"Transit Size(MB)": 0,
                                                                                  "Transit Time(ms)": 0}}  # fmt: skip
    said = {op: {"Communication Time Info": cost, "Communication Bandwidth Info": moved}}
    write(here / "communication.json", json.dumps({"step7": {"p2p": {}, "collective": said}}))
    link = {"Transport Type": "HCCS", "Transit Size(MB)": 2.0, "Transit Time(ms)": 0.01, "Bandwidth(GB/s)": 200}
    write(here / "communication_matrix.json", json.dumps({"step7": {"collective": {op: {"0-1": link}}}}))
    return folder


def write_prof(folder, device=0):
    """A PROF folder: two iterations of 1000 us, 500 us apart."""
    here = folder / "PROF_000001_1_A" / f"device_{device}"
    write(here / f"start_info.{device}", '{"collectionTimeBegin": "1700000000000000", "clockMonotonicRaw": "5000000"}')
    events = [{"name": "process_name", "pid": 1, "tid": 0, "args": {"name": "Step Trace"}, "ph": "M"}]
    for number, at in ((1, 10_000), (2, 11_500)):
        fp, bp, end = at + 10.5, at + 600.5, at + 1000.0
        common = {"pid": 1, "tid": 1, "ph": "X"}
        events += [
            {"name": f"Iteration {number}", "ts": at, "dur": 1000.0, "cat": "Iteration Time", **common,
             "args": {"Iteration ID": number, "FP Start": fp, "BP End": bp, "Iteration End": end,
                      "Iteration Time(ns)": 1000000.0}},
            {"name": f"FP_BP Time {number}", "ts": fp, "dur": 590.0, "cat": "FP_BP Time", **common,
             "args": {"Iteration ID": number, "FP_BP Time(ns)": 590000.0}},
            {"name": f"Iteration Refresh {number}", "ts": bp, "dur": 399.5, "cat": "Iteration Refresh", **common,
             "args": {"Iteration ID": number, "Iteration Refresh(ns)": 399500.0}},
            {"name": f"Reduce_{number}_0", "ts": bp, "dur": 100.0, "cat": "Reduce", **common,
             "args": {"Iteration ID": number, "Reduce Start 0": bp, "Reduce End 0": bp + 100.0}},
        ]  # fmt: skip
    write(here / "timeline" / f"step_trace_{device}_2_1.json", json.dumps(events))
    write(here / "timeline" / f"step_trace_{device}_2_2.json", json.dumps(events))
    hardware = {"name": "process_name", "pid": 3, "tid": 0, "args": {"name": "Ascend Hardware"}, "ph": "M"}
    task = {"name": "Default/MatMul-op3", "pid": 3, "tid": 2, "ts": 10_020.5, "dur": 20.25, "ph": "X",
            "args": {"Task Type": "AI_CORE", "Stream Id": 2}}  # fmt: skip
    write(here / "timeline" / f"task_time_{device}_2_1.json", json.dumps([hardware, task]))
    return folder


def write_cpu(folder, rank=0, steps=3):
    """FRAMEWORK of MindSpore's CPU profiler: three operators per step of 1000 ns."""
    ops = {"Default/network/MatMul-op1": (0, 100), "Gradients/Default/MatMulGrad-op1": (200, 300),
           "Default/optimizer-Momentum/ApplyMomentum-op1": (600, 50)}  # fmt: skip
    lines = [
        f"{name};HostCpuOps;" + " ".join(f"{EPOCH_US * 1000 + 1000 * k + at},{dur / 1e6:g},0" for k in range(steps)) + " \n"
        for name, (at, dur) in ops.items()
    ]  # fmt: skip
    write(folder / "FRAMEWORK" / f"cpu_op_execute_timestamp_{rank}.txt", "".join(lines))
    launches = [
        f"{name.rpartition('/')[2].partition('-')[0]};{name.rpartition('/')[2]};9;input_1:[2, 3];\n" for name in ops
    ]
    write(folder / "FRAMEWORK" / f"cpu_framework_{rank}.txt", "".join(launches * steps))
    return folder


def write_gpu(folder, rank=0, *, by_step=False):
    """The files of a GPU: two steps of 1000 us, a kernel in each, a collective in the tail; totals, work, shapes."""
    zero = EPOCH_US * 1000
    fp, bp, end = "Default/A-op1", "Gradients/B-op2", "Default/C-op3"
    if by_step:
        rows = [f"{fp},{zero + at + 100_000} {fp},{zero + at + 100_000} {bp},{zero + at + 600_000} {end},{zero + at + 10**6}"
                f" Default/AllReduce-op9,{zero + at + 700_000},{zero + at + 800_000}" for at in (0, 10**6)]  # fmt: skip
    else:
        tick = zero // 10
        rows = [f"{name} " + " ".join(f"{tick + at + 100_000 * k},{tick + at + 100_000 * k + 10}" for k in (0, 1))
                for name, at in ((fp, 10_000), (bp, 59_990), (end, 99_990))]  # fmt: skip
        rows.append(
            "Default/AllReduce-op9 " + " ".join(f"{tick + 70_000 + k},{tick + 80_000 + k}" for k in (0, 100_000))
        )
    write(folder / f"step_trace_profiling_{rank}.txt", "\n".join(rows) + "\n")
    write(folder / f"gpu_op_execute_timestamp_{rank}.txt",
          f"Default/MatMul-op4;GpuOps;{zero + 200_000},303.84 {zero + 1_200_000},303.84\n")  # fmt: skip
    write(folder / f"gpu_op_type_info_{rank}.csv",
          "op_type,type_occurrences,total_time(us),total_proportion,avg_time(us)\nMatMul,2,607.68,1,303.84\n")  # fmt: skip
    write(folder / f"flops_{rank}.txt",
          "full_kernel_name, MFLOPs(10^6 cube), GFLOPS(10^9 cube), MFLOPs(10^6 vector)\nDefault/MatMul-op4, 1.5, 9, 0.25\n")  # fmt: skip
    one = {"step": 1, "op_side": "gpu", "op_type": "Add", "op_name": "Add-op6", "dur": 2.5, "shape_info": ["[32, 1]"]}
    write(folder / f"dynamic_shape_info_{rank}.json", json.dumps({"operator": {"1": [one], "2": [one]}, "kernel": {}}))
    return folder


def write_cluster(folder):
    """What cluster analysis makes of two ranks: steps, communication, links."""
    write(
        folder / "cluster_step_trace_time.csv",
        "Step,Type,Index,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
        "Communication(Not Overlapped and Exclude Receive)\n7,rank,0,40,10,10,20,9,59,0,10\n7,rank,1,41,10,10,20,9,60,0,10\n"
        '7,stage,"(0, 1)",41,10,10,20,9,60,0,10\n',
    )
    cost = {"Elapse Time(ms)": 0.02, "Transit Time(ms)": 0.01, "Wait Time(ms)": 0.008,
            "Synchronization Time(ms)": 0.007, "Idle Time(ms)": 0.002}  # fmt: skip
    moved = {"HCCS": {"Transit Size(MB)": 2.0, "Transit Time(ms)": 0.01}}
    said = {str(rank): {"Communication Time Info": cost, "Communication Bandwidth Info": moved} for rank in (0, 1)}
    operators = {"hcom_allReduce__586_0_1@99": said, "Total Op Info": said}
    write(folder / "cluster_communication.json", json.dumps({"(0, 1)": {"step7": operators}, "p2p": {"step7": {}}}))
    link = {"Transport Type": "HCCS", "Transit Size(MB)": 2.0, "Transit Time(ms)": 0.01}
    links = {"hcom_allReduce__586_0_1@99": {"0-1": link, "1-0": link}, "Total Op Info": {"0-1": link}}
    write(folder / "cluster_communication_matrix.json", json.dumps({"(0, 1)": {"step7": links}}))
    return folder
