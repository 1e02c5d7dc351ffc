//! The loader's tests, one program for all files.

mod addresses;
mod common;
mod controls;
mod estimate;
mod files;
mod media;
mod overrides;
mod plans;
mod properties;
mod queues;
mod renamed;
mod topologies;
