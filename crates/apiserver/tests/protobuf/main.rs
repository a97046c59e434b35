//! Protobuf: the bytes of Kubernetes' own encoder, every kind in both directions, and what clients send and get.

#[path = "../support/client.rs"]
mod client;
mod filled;
mod recorded;
mod served;
mod stored;
