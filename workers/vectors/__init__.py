"""The vector store, brought to hold what rows say: points written, texts embedded, drift found."""
