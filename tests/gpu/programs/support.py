"""What several of the programs need."""
import json
import sys


def turns(work, warm):
    """Takes turns with another process: for every line that comes in, one line of JSON goes out, what `work` returned."""
    for _ in range(warm):
        work()
    print("ready", flush=True)
    for _ in sys.stdin:
        print(json.dumps(work()), flush=True)
