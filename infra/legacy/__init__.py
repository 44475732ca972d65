"""Memory stores of before memctl, for `memctl import`: `rows` finds their rows, `meaning` says what each claims."""
