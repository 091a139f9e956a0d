"""What a program may set, and the checks of it before anything starts."""
