//! Ratings, groups and targets of reputation-based scheduling.
