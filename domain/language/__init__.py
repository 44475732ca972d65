"""What people and agents say: prompts, claims, decisions, hypotheses, and summaries of it."""
