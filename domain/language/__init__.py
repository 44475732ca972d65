"""What people and agents say: prompts, claims, decisions, hypotheses, moods, and summaries of it."""
