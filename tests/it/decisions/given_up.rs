//! What is told of a row that was given up, before another one of its payment is charged.
//!
//! Notation: `fixtures/decisions/given_up.txt`.

use tieout::decide::given_up::{Told, told};

use super::notation::read;

const TABLE: &str = include_str!("../../../fixtures/decisions/given_up.txt");

#[test]
fn what_was_given_up_is_judged_as_a_row_of_its_own() {
    let mut failures = Vec::new();
    for (number, cells) in super::lines(TABLE, 4) {
        let [row, evidence, lacks, expected] = cells[..] else { panic!("line {number}") };
        let world = read(row, evidence, "-", "-", "run");
        let lacks = (lacks != "-").then(|| lacks.to_owned());
        let told = told(&world.row, &world.evidence, lacks, &world.policy, world.now);
        let word = match told {
            Told::Paid => "paid",
            Told::UnderWay => "under_way",
            Told::Silence(_) => "silence",
            Told::Lacks(_) => "lacks",
            Told::Unpaid => "unpaid",
        };
        if word != expected {
            failures.push(format!("given_up.txt:{number}: {word}: {}", cells.join(" | ")));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
