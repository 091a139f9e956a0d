//! What people run all day must not be lost to caution: every command of the list is decided as it is written there.
