"""Runs trainings of the catalogue, one after the other: `python lab/real_trainings/train.py NAME... [--seconds 4]`."""

import argparse
from importlib import import_module

import mindspore as ms
from catalogue import find
from networks import network, run


def main():
    parser = argparse.ArgumentParser(description="Runs trainings of the catalogue.")
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument("--seconds", type=float, default=4.0, help="from the first step on")
    options = parser.parse_args()
    for name in options.names:
        train(find(name), options.seconds)


def train(case, seconds):
    ms.set_seed(1)
    module, function = case.make.split(".")
    make = getattr(import_module(module), function)
    data = make(workers=case.workers) if case.workers else make()
    steps = run(case.loop, network(*case.input, heavy=case.heavy), data, seconds, soft=case.soft)
    print(f"{case.name}: {steps} steps", flush=True)


if __name__ == "__main__":
    main()
