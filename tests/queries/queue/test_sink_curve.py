from table_rows import KEY

GIVE = "side part first_batch last_batch t_ns batches mean_depth low_depth capacity"


def fetch(number, side, depth, **more):
    row = {"fetch": number, "side": side, "depth": depth, "start_ns": number * 10, "capacity": 4}
    return KEY | row | more


def test_both_queues_in_equal_parts_of_their_batches(ask):
    host = [fetch(number, "host_queue", depth, wait_ns=2) for number, depth in enumerate((0, 2, 4, 4, 3))]
    device = [fetch(number, "data_queue", depth, start_ns=None, capacity=None) for number, depth in enumerate((1, 0))]
    others = [fetch(0, "iterator", 9), fetch(5, "host_queue", None)]
    assert ask("queue/sink_curve", {"fetch": host + device + others}, points=2, give=GIVE) == [
        ("data_queue", 0, 0, 0, None, 1, 1.0, 1, None),
        ("data_queue", 1, 1, 1, None, 1, 0.0, 0, None),
        ("host_queue", 0, 0, 2, 2, 3, 2.0, 0, 4),
        ("host_queue", 1, 3, 4, 32, 2, 3.5, 3, 4),
    ]
