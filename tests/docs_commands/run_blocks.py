"""Runs files of Python named on standard input, all in one namespace. Usage: run_blocks.py STATUS_PIPE"""
import os
import sys
import traceback

pipe, names = int(sys.argv[1]), {"__name__": "__main__"}
sys.argv = [""]
for path in sys.stdin:
    status = 0
    try:
        with open(path.rstrip("\n"), encoding="utf-8") as block:
            exec(compile(block.read(), path.rstrip("\n"), "exec"), names)
    except BaseException:  # a block that exits has failed, too
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(pipe, b"%d\n" % status)
