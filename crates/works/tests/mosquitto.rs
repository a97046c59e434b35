//! The document's flows on a real mosquitto, in both dialects, with an independent subscriber that sees the topics.
