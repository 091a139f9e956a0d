"""Session stores: the interface, its rules, and sessions that live in one."""
