//! The ManifestWork conversation: CloudEvents codec, resync, MQTT and loopback transports.
