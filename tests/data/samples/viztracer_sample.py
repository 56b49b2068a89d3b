"""Makes tests/data/corpus/chrome/viztracer.json: python viztracer_sample.py OUT.json (needs the package viztracer).

Two threads call the same functions a known number of times; a counter, an instant and an async pair are logged by hand.
"""

import sys
import threading

from viztracer import VizTracer


def leaf(number):
    return number + 1


def work(count):
    total = 0
    for number in range(count):
        total = leaf(total)
    return total


def main():
    tracer = VizTracer(ignore_c_function=True, verbose=0, file_info=False, output_file=sys.argv[1])
    tracer.start()
    work(3)
    tracer.log_var("level", 7)
    tracer.log_instant("half time", args={"why": 'a "quoted" reason'})
    thread = threading.Thread(target=work, args=(2,), name="helper")
    thread.start()
    thread.join()
    tracer.stop()
    tracer.save()


main()
