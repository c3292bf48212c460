//! Where reports stand, and what failing and killed builds leave there.

use chrono_tz::Europe::Berlin;
use tieout::report;
use tieout::report::cells::Dialect;
use tieout::report::columns::MANIFEST;
use tieout::report::error::ReportError;
use tieout::report::place::ListedState;
use tieout::store::records::RunState;

use super::vectors::{RUN, block, build, built, bytes_of, manifest, mixed, options, sound, table};

#[test]
fn a_build_that_fails_anywhere_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let mut source = mixed();
    source.watched = Some(root.path().to_path_buf());
    let calls = {
        let probe = tempfile::tempdir().unwrap();
        build(&source, probe.path(), Dialect::Plain).unwrap();
        source.calls.borrow().len()
    };
    assert!(calls > 8, "{calls}");
    for call in 0..calls {
        source.calls.borrow_mut().clear();
        source.fails_at = Some(call);
        let error = build(&source, root.path(), Dialect::Plain).unwrap_err();
        assert!(matches!(error, ReportError::Store { .. }), "call {call}: {error}");
        let days = std::fs::read_dir(root.path()).unwrap().flatten();
        let left: Vec<_> =
            days.flat_map(|day| std::fs::read_dir(day.path()).unwrap().flatten()).collect();
        assert!(left.is_empty(), "call {call}: {left:?}");
    }
}

#[test]
fn a_failed_build_leaves_the_older_report_as_it_was() {
    let mut source = mixed();
    let (root, first) = built(&source, Dialect::Plain);
    let before = bytes_of(&first.dir);
    source.calls.borrow_mut().clear();
    source.fails_at = Some(4);
    build(&source, root.path(), Dialect::Excel).unwrap_err();
    assert_eq!(bytes_of(&first.dir), before);
}

#[test]
fn a_report_is_replaced_whole_and_left_overs_of_killed_builds_go() {
    let source = mixed();
    let (root, first) = built(&source, Dialect::Plain);
    let day = first.dir.parent().unwrap();
    // No process has this number: Linux ends below it.
    let killed = day.join(format!(".{RUN}.partial-4194999-0"));
    let alive = day.join(format!(".{RUN}.partial-{}-999999", std::process::id()));
    for folder in [&killed, &alive] {
        std::fs::create_dir(folder).unwrap();
        std::fs::write(folder.join("reconciliation.csv"), "half").unwrap();
    }
    std::fs::write(first.dir.join("mine.txt"), "not part of it").unwrap();
    let second = build(&source, root.path(), Dialect::Excel).unwrap();
    assert!(second.replaced);
    assert_eq!(second.dir, first.dir);
    assert!(!second.dir.join("mine.txt").exists(), "the directory is exchanged, not merged");
    sound(&source, &second.dir);
    assert!(!killed.exists());
    assert!(alive.exists(), "a build that goes on is left alone");
    let names: Vec<_> = std::fs::read_dir(day).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn reports_are_listed_newest_first_and_unfinished_ones_named() {
    let source = mixed();
    let (root, built) = built(&source, Dialect::Plain);
    std::fs::create_dir_all(root.path().join("2026-11-18/half")).unwrap();
    std::fs::create_dir_all(root.path().join("2026-11-21/broken")).unwrap();
    std::fs::write(root.path().join("2026-11-21/broken").join(MANIFEST), "{").unwrap();
    std::fs::create_dir_all(root.path().join("2026-11-20/.x.partial-1-0")).unwrap();
    std::fs::create_dir_all(root.path().join("archive/x")).unwrap();
    std::fs::write(root.path().join("readme.txt"), "").unwrap();
    let found = report::list(root.path()).unwrap();
    let names: Vec<&str> = found.iter().map(|listed| listed.run_id.as_str()).collect();
    assert_eq!(names, ["broken", RUN, "half"]);
    assert!(matches!(found[0].state, ListedState::Unreadable(_)));
    assert_eq!(found[1].dir, built.dir);
    let ListedState::Whole { tie_out, rows, exit_class, .. } = &found[1].state else {
        panic!("{:?}", found[1]);
    };
    assert_eq!((tie_out.as_str(), *rows, exit_class.as_str()), ("tied", 18, "ok"));
    assert_eq!(found[2].state, ListedState::Unfinished);
    let error = report::list(&root.path().join("nowhere")).unwrap_err();
    assert!(error.hint().is_some(), "{error}");
}

#[test]
fn only_closed_runs_with_plain_names_are_reported() {
    let root = tempfile::tempdir().unwrap();
    let source = mixed();
    let no_run = block(report::build(&source, "other", root.path(), &options(Dialect::Plain)));
    assert!(matches!(no_run, Err(ReportError::NoRun { .. })));
    let mut running = source.clone();
    running.run.state = RunState::Running;
    running.run.ended_at = None;
    let error = build(&running, root.path(), Dialect::Plain).unwrap_err();
    assert!(matches!(error, ReportError::StillRunning { .. }));
    for name in ["../up", "a/b", ".hidden", "", "a b", "run\n"] {
        let mut odd = source.clone();
        odd.run.id = name.into();
        let error = block(report::build(&odd, name, root.path(), &options(Dialect::Plain)));
        assert!(matches!(error, Err(ReportError::BadName { .. })), "{name:?}");
    }
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0, "nothing was written");
}

#[test]
fn a_whole_day_files_its_report_and_the_run_s_own_zone_holds() {
    let mut source = mixed();
    source.run.scope = serde_json::json!({
        "timezone": Berlin.name(),
        "window": {
            "from": "2026-11-16T23:00:00.000000Z", "to": "2026-11-17T23:00:00.000000Z",
            "on": "created", "words": "2026-11-17",
        },
    })
    .to_string();
    let (root, built) = built(&source, Dialect::Plain);
    assert_eq!(built.dir, root.path().join("2026-11-17").join(RUN));
    assert_eq!(manifest(&built.dir)["window"]["words"], "2026-11-17");
    let rows = table(&built.dir, "reconciliation.csv", Dialect::Plain);
    assert_eq!(rows[0]["age_days"], "3", "ages count to the day of the run");
}
