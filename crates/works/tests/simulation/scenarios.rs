//! Named reports from users of the OCM implementation, played against both ends.
