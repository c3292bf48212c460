//! The program's entry: words in, exit code out.

fn main() {}
