//! The built-in MQTT broker and its access rules.
