"""Workers with effects: what consolidates, reflects, asks a language model, and looks at files."""
