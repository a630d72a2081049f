"""What the tests of `arenite plan` share."""
import pathlib
import tempfile
import unittest

# 4 bytes are live at any time, but no plan takes less than 5.
GADGET = """id,lower,upper,size
a,0,1,2
b,0,3,2
c,1,5,1
d,1,4,1
e,3,4,1
f,3,5,1
g,4,6,2
h,5,6,2
"""
HELP = " (hint: see arenite plan --help)"


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def refused(self, result, message, status=2):
        self.assertEqual((result.returncode, result.stdout, result.stderr), (status, "", f"arenite: {message}\n"))
