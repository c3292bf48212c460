//! What people read: the summary of a run.
