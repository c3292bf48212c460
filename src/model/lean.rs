//! What is stored for every row that a run looks at leaves out what it would say anyway: nothing
//! found, nothing remembered, nothing wrong. Half of a record's bytes were that, and each byte is
//! written, hashed and read back.

/// Whether a field says what it says where it is left out.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
