"""The runtime as a child process: finding it, starting it, its lines, its end."""
