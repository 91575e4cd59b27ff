//! Kafka's client against a real broker and, where faults must come on command, against the mock cluster.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod consumer;
mod dead_letters;
mod false_ack;
mod members;
mod partitioner;
mod producer;
mod queue;
mod reader;
