-- What the agent remembers (journal.rs); `muster node why --state` reads it.
CREATE TABLE IF NOT EXISTS fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS job (
    node INTEGER NOT NULL, task INTEGER NOT NULL, deadline INTEGER NOT NULL,
    stage TEXT NOT NULL, redundancy INTEGER NOT NULL, place INTEGER NOT NULL, lot INTEGER NOT NULL,
    kind INTEGER NOT NULL, value BLOB NOT NULL, salt BLOB NOT NULL, result TEXT, outcome TEXT, paid TEXT NOT NULL,
    changed INTEGER NOT NULL DEFAULT (unixepoch()),
    PRIMARY KEY (node, task, deadline)) STRICT;
CREATE INDEX IF NOT EXISTS job_open ON job (node, stage);
CREATE TABLE IF NOT EXISTS pause (node INTEGER NOT NULL, why TEXT NOT NULL, PRIMARY KEY (node, why)) STRICT;
CREATE TABLE IF NOT EXISTS download (node INTEGER NOT NULL, model INTEGER NOT NULL, done INTEGER NOT NULL,
    PRIMARY KEY (node, model)) STRICT;
CREATE TABLE IF NOT EXISTS kept (name TEXT PRIMARY KEY, sealed INTEGER NOT NULL, until INTEGER NOT NULL) STRICT;
PRAGMA user_version = 1;
