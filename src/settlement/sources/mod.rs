//! Where settlement files come from: a folder, or an SFTP server that is only read.

pub mod known_hosts;
