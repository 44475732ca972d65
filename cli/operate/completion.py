"""`memctl completion`: what a shell needs to complete memctl's commands and options."""

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print what completes commands and options in a SHELL.

    \b
    memctl completion bash > ~/.local/share/bash-completion/completions/memctl
    memctl completion zsh > "${fpath[1]}/_memctl"
    memctl completion fish > ~/.config/fish/completions/memctl.fish
    """
    from memctl.cli.main import memctl

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(memctl, {}, "memctl", "_MEMCTL_COMPLETE").source())
