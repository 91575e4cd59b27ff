//! Generated gRPC messages and stubs; nothing here is written by hand.
#![allow(missing_docs, clippy::all, clippy::too_many_lines, reason = "generated code")]

/// Orders: what `order-service` answers.
pub mod order {
    pub mod v1 {
        tonic::include_proto!("brew.order.v1");
    }
}

/// Stock: what `inventory-service` answers.
pub mod inventory {
    pub mod v1 {
        tonic::include_proto!("brew.inventory.v1");
    }
}

/// Payments: what `payment-service` answers.
pub mod payment {
    pub mod v1 {
        tonic::include_proto!("brew.payment.v1");
    }
}

/// Every message and service, encoded, for gRPC reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
