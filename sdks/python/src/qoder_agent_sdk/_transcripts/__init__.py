"""Sessions on disk: listing, reading, renaming, forking, deleting."""
