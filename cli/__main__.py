"""The `memctl` command: what a hook calls goes its own short way, everything else to click."""

import sys

from memctl.infra import hook


def run() -> None:
    """Run the command line."""
    if not hook.run(sys.argv[1:]):
        from memctl.cli.main import run as run_commands

        run_commands()


if __name__ == "__main__":
    run()
