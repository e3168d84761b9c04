"""`python -m pipeprof`."""

from pipeprof.cli import start

if __name__ == "__main__":
    start()
