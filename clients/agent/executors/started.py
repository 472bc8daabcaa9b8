"""A server that an executor starts, by the command behind `--`, and ends. Standard library alone."""

import atexit
import subprocess


def divided(arguments):
    """The executor's own arguments, and the command behind `--`, if there is one."""
    if "--" not in arguments:
        return arguments, []
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


class Started:
    """The server of a command; None if that is empty: then it runs elsewhere."""

    def __init__(self, command):
        self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=2) if command else None
        if self.child is not None:
            # Nothing else would end it, however this process ends.
            atexit.register(self.child.kill)

    def ended(self):
        """Its exit status, once it has ended by itself; else None."""
        return self.child.poll() if self.child is not None else None

    def end(self):
        """Ends the server."""
        if self.child is not None:
            self.child.terminate()
            self.child.wait(30)
