//! Go's text/template over a map of strings, with Go's outputs, errors and positions.
