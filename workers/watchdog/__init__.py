"""What sees that workers make progress, ends what makes none, and says where it was."""
