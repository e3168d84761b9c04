from pipeprof.collect import fingerprint


def pytest_benchmark_update_machine_info(machine_info):
    """Files of several jobs on one machine stay apart when they are compared."""
    machine_info["job"] = fingerprint.job()
