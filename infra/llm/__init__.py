"""Language models: off unless a person configures one. Prompts stand in files beside, each with its version."""
