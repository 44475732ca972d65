# What `make run` does once memctl is installed: start it, read sessions, show what was learnt.
set -eu

# Show a command as it can be typed, then run it.
step() {
    shown=
    for word; do
        case $word in *[!A-Za-z0-9_./-]*) word="'$word'" ;; esac
        shown="$shown $word"
    done
    printf '\n$%s\n' "$shown"
    "$@"
}

step memctl up
code=0
step memctl ingest --wait || code=$?
if [ "$code" -eq 3 ]; then
    echo "Reading the example session that comes with memctl instead."
    step memctl ingest --example --wait
    example=yes
    asked="why were the invoice totals off by a cent"
elif [ "$code" -ne 0 ]; then
    exit "$code"
else
    asked="how did we fix the failing test"
fi
step memctl search --project '*' --limit 2 "$asked" || true
step memctl insights --project '*' --limit 3 || true
step memctl bugs --project '*' --limit 1 || true
if [ "${example:-}" ]; then
    printf '\nThe example is in your memory as project "ledger". It goes with:  memctl forget --project ledger\n'
fi
printf '\nmemctl runs. It stops with:  %s down\n' "$(command -v memctl)"
