"""What shell commands do: programs, pipelines, test runs, and how a project is worked on."""
