"""Which places are one project, what it is built with, and what a key limited to projects may see."""
