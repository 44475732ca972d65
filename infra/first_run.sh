# What `make run` does once memctl is installed: start it, read sessions, show what was learnt.
set -eu
memctl up
if memctl ingest --found >/dev/null 2>&1; then
    echo "Reading your own sessions:"
    memctl ingest --wait
    query="error"
else
    echo "No sessions of Claude Code, Codex or Copilot CLI here: reading the example that comes with memctl."
    memctl ingest --example --wait
fi
