//! Who gives a command, for the records: the operating system's word, not the environment's.

use crate::config::{names, variable};

/// The user's name; who called sudo to become root stands behind it.
pub fn name() -> String {
    let id = rustix::process::getuid().as_raw();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = name_of(&users, id).unwrap_or_else(|| format!("uid {id}"));
    let is_root = rustix::process::geteuid().is_root();
    with_sudo(name, is_root, variable(names::SUDO_USER))
}

/// Anybody may set a variable of his own processes: it is believed of root's, for which sudo sets
/// it.
fn with_sudo(name: String, is_root: bool, sudo: Option<String>) -> String {
    match sudo.filter(|sudo| is_root && *sudo != name) {
        Some(sudo) => format!("{name}, by sudo of {}", one_line(&sudo)),
        None => name,
    }
}

/// The name of a user in the text of /etc/passwd.
fn name_of(users: &str, id: u32) -> Option<String> {
    let id = id.to_string();
    let mut lines = users.lines().map(|line| line.split(':'));
    lines.find_map(|mut fields| {
        let name = fields.next()?;
        (fields.nth(1)? == id).then(|| name.to_owned())
    })
}

fn one_line(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_number() {
        let users = "root:x:0:0:root:/root:/bin/sh\nbroken\nmara:x:1001:1001::/home/mara:\n";
        assert_eq!(name_of(users, 1001).as_deref(), Some("mara"));
        assert_eq!(name_of(users, 0).as_deref(), Some("root"));
        assert_eq!(name_of(users, 7), None);
        assert_eq!(one_line("ma\nra"), "mara");
    }

    #[test]
    fn nobody_but_root_is_said_to_have_come_by_sudo() {
        for (name, is_root, sudo, want) in [
            ("root", true, Some("ma\nra"), "root, by sudo of mara"),
            ("root", true, Some("root"), "root"),
            ("root", true, None, "root"),
            ("eve", false, Some("mara"), "eve"),
        ] {
            assert_eq!(with_sudo(name.to_owned(), is_root, sudo.map(str::to_owned)), want);
        }
    }
}
