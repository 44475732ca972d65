"""What rules are made of and no other room knows: text, patterns, bounded collections, places, errors."""
