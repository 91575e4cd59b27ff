//! Kafka's client against a real broker and, where faults must come on command, against the mock cluster.

mod consumer;
mod false_ack;
mod partitioner;
mod producer;
