//! Revisions, watch, compaction and the label index over interchangeable backends.
