//! Every environment variable that tieout reads by itself, in one list. Secrets are read from
//! the variables that the configuration names, and from no other.
//!
//! No name may begin with `TIEOUT_SERVICE_` or `TIEOUT_PORT`: Kubernetes sets those for every
//! pod beside a service that is called `tieout`.

/// The configuration file.
pub const CONFIG: &str = "TIEOUT_CONFIG";
/// The zone of business days, over `business_timezone`.
pub const TZ: &str = "TIEOUT_TZ";
/// `--quiet`.
pub const QUIET: &str = "TIEOUT_QUIET";
/// `--verbose`, as a number.
pub const VERBOSE: &str = "TIEOUT_VERBOSE";
/// `--json`.
pub const JSON: &str = "TIEOUT_JSON";
/// `--log-format`.
pub const LOG_FORMAT: &str = "TIEOUT_LOG_FORMAT";
/// `--log-file`.
pub const LOG_FILE: &str = "TIEOUT_LOG_FILE";
/// `--no-color`.
pub const TIEOUT_NO_COLOR: &str = "TIEOUT_NO_COLOR";
/// The convention of many programs: set and not empty means no colour.
pub const NO_COLOR: &str = "NO_COLOR";
/// `--progress`.
pub const PROGRESS: &str = "TIEOUT_PROGRESS";
/// `--date`.
pub const DATE: &str = "TIEOUT_DATE";
/// `--from`.
pub const FROM: &str = "TIEOUT_FROM";
/// `--to`.
pub const TO: &str = "TIEOUT_TO";
/// `--since`.
pub const SINCE: &str = "TIEOUT_SINCE";
/// `--on`.
pub const ON: &str = "TIEOUT_ON";
/// `--id`, one a line.
pub const ID: &str = "TIEOUT_ID";
/// `--ids-from`.
pub const IDS_FROM: &str = "TIEOUT_IDS_FROM";
/// `--psp`, separated by commas.
pub const PSP: &str = "TIEOUT_PSP";
/// `--all`.
pub const ALL: &str = "TIEOUT_ALL";
/// `--min-age`, over `limits.min_age`.
pub const MIN_AGE: &str = "TIEOUT_MIN_AGE";
/// `--limit`, over `limits.rows`.
pub const LIMIT: &str = "TIEOUT_LIMIT";
/// `limits.batch`.
pub const BATCH: &str = "TIEOUT_BATCH";
/// `--max-duration`, over `limits.max_duration`.
pub const MAX_DURATION: &str = "TIEOUT_MAX_DURATION";
/// `--concurrency`.
pub const CONCURRENCY: &str = "TIEOUT_CONCURRENCY";
/// `--rate`.
pub const RATE: &str = "TIEOUT_RATE";
/// `--grace`, over `limits.grace`.
pub const GRACE: &str = "TIEOUT_GRACE";
/// `--dry-run`.
pub const DRY_RUN: &str = "TIEOUT_DRY_RUN";
/// `--scope`, over `monitoring.scope`.
pub const SCOPE: &str = "TIEOUT_SCOPE";
/// `--report-dir`, over `report.dir`.
pub const REPORT_DIR: &str = "TIEOUT_REPORT_DIR";
/// Over `files.spool`.
pub const FILES_SPOOL: &str = "TIEOUT_FILES_SPOOL";
/// `--fingerprint` of `sources trust`.
pub const TRUST_FINGERPRINT: &str = "TIEOUT_TRUST_FINGERPRINT";
/// `--yes` of `sources trust`.
pub const TRUST_YES: &str = "TIEOUT_TRUST_YES";
/// `--fail-on`, over `report.fail_on`, separated by commas.
pub const FAIL_ON: &str = "TIEOUT_FAIL_ON";
/// `--yes`.
pub const YES: &str = "TIEOUT_YES";
/// `--run-id`.
pub const RUN_ID: &str = "TIEOUT_RUN_ID";
/// `--table` of `explain`.
pub const TABLE: &str = "TIEOUT_TABLE";
/// `--origin` of `config show`.
pub const ORIGIN: &str = "TIEOUT_ORIGIN";
/// `--connect` of `config check`.
pub const CONNECT: &str = "TIEOUT_CONNECT";
/// `--force` of `config init`.
pub const INIT_FORCE: &str = "TIEOUT_INIT_FORCE";
/// `--output` of `config init`.
pub const INIT_OUTPUT: &str = "TIEOUT_INIT_OUTPUT";
/// `--url` of `config init`.
pub const INIT_URL: &str = "TIEOUT_INIT_URL";
/// `--url-env` of `config init`.
pub const INIT_URL_ENV: &str = "TIEOUT_INIT_URL_ENV";
/// `--search-path` of `config init`.
pub const INIT_SEARCH_PATH: &str = "TIEOUT_INIT_SEARCH_PATH";
/// `--table` of `config init`.
pub const INIT_TABLE: &str = "TIEOUT_INIT_TABLE";
/// `--key` of `config init`.
pub const INIT_KEY: &str = "TIEOUT_INIT_KEY";
/// `--status` of `config init`.
pub const INIT_STATUS: &str = "TIEOUT_INIT_STATUS";
/// `--processing` of `config init`.
pub const INIT_PROCESSING: &str = "TIEOUT_INIT_PROCESSING";
/// `--succeeded` of `config init`.
pub const INIT_SUCCEEDED: &str = "TIEOUT_INIT_SUCCEEDED";
/// `--failed` of `config init`.
pub const INIT_FAILED: &str = "TIEOUT_INIT_FAILED";
/// `--retryable` of `config init`.
pub const INIT_RETRYABLE: &str = "TIEOUT_INIT_RETRYABLE";
/// `--amount` of `config init`.
pub const INIT_AMOUNT: &str = "TIEOUT_INIT_AMOUNT";
/// `--unit` of `config init`.
pub const INIT_UNIT: &str = "TIEOUT_INIT_UNIT";
/// `--currency` of `config init`.
pub const INIT_CURRENCY: &str = "TIEOUT_INIT_CURRENCY";
/// `--created` of `config init`.
pub const INIT_CREATED: &str = "TIEOUT_INIT_CREATED";
/// `--attempted` of `config init`.
pub const INIT_ATTEMPTED: &str = "TIEOUT_INIT_ATTEMPTED";
/// `--reference` of `config init`.
pub const INIT_REFERENCE: &str = "TIEOUT_INIT_REFERENCE";
/// `--tag` of `config init`.
pub const INIT_TAG: &str = "TIEOUT_INIT_TAG";
/// `--time` of `config init`.
pub const INIT_TIME: &str = "TIEOUT_INIT_TIME";
/// `--account` of `config init`.
pub const INIT_ACCOUNT: &str = "TIEOUT_INIT_ACCOUNT";
/// `--key-env` of `config init`.
pub const INIT_KEY_ENV: &str = "TIEOUT_INIT_KEY_ENV";
/// `--live` of `config init`.
pub const INIT_LIVE: &str = "TIEOUT_INIT_LIVE";
/// `--tag-at` of `config init`.
pub const INIT_TAG_AT: &str = "TIEOUT_INIT_TAG_AT";
/// `--timezone` of `config init`.
pub const INIT_TIMEZONE: &str = "TIEOUT_INIT_TIMEZONE";
/// `--all` of `cases list`.
pub const CASES_ALL: &str = "TIEOUT_CASES_ALL";
/// `--reason` of `cases`.
pub const CASES_REASON: &str = "TIEOUT_CASES_REASON";
/// `--run` of `cases`.
pub const CASES_RUN: &str = "TIEOUT_CASES_RUN";
/// `--limit` of `cases list`.
pub const CASES_LIMIT: &str = "TIEOUT_CASES_LIMIT";
/// `--reason` of `cases kick`.
pub const KICK_REASON: &str = "TIEOUT_KICK_REASON";
/// `--fixed-by-rules` of `cases kick`.
pub const KICK_FIXED_BY_RULES: &str = "TIEOUT_KICK_FIXED_BY_RULES";
/// `--all` of `cases kick`.
pub const KICK_ALL: &str = "TIEOUT_KICK_ALL";
/// `--limit` of `cases kick`.
pub const KICK_LIMIT: &str = "TIEOUT_KICK_LIMIT";
/// `--why` of `cases kick`.
pub const KICK_WHY: &str = "TIEOUT_KICK_WHY";
/// `--dry-run` of `cases kick`.
pub const KICK_DRY_RUN: &str = "TIEOUT_KICK_DRY_RUN";
/// `--yes` of `cases kick`.
pub const KICK_YES: &str = "TIEOUT_KICK_YES";
/// `--psp` of `rules list`.
pub const RULES_PSP: &str = "TIEOUT_RULES_PSP";
/// `--own` of `rules list`.
pub const RULES_OWN: &str = "TIEOUT_RULES_OWN";
/// `--since` of `rules stats` and `rules diff`.
pub const RULES_SINCE: &str = "TIEOUT_RULES_SINCE";
/// `--limit` of `rules diff`.
pub const RULES_LIMIT: &str = "TIEOUT_RULES_LIMIT";
/// `--from-case` of `rules new`.
pub const RULES_FROM_CASE: &str = "TIEOUT_RULES_FROM_CASE";
/// `--account` of `cases`.
pub const CASES_ACCOUNT: &str = "TIEOUT_CASES_ACCOUNT";
/// `--table` of `cases`.
pub const CASES_TABLE: &str = "TIEOUT_CASES_TABLE";
/// `--owner` of `cases`.
pub const CASES_OWNER: &str = "TIEOUT_CASES_OWNER";
/// `--currency` of `cases`.
pub const CASES_CURRENCY: &str = "TIEOUT_CASES_CURRENCY";
/// `--amount-from` of `cases`.
pub const CASES_AMOUNT_FROM: &str = "TIEOUT_CASES_AMOUNT_FROM";
/// `--amount-to` of `cases`.
pub const CASES_AMOUNT_TO: &str = "TIEOUT_CASES_AMOUNT_TO";
/// `--older-than` of `cases`.
pub const CASES_OLDER_THAN: &str = "TIEOUT_CASES_OLDER_THAN";
/// `--younger-than` of `cases`.
pub const CASES_YOUNGER_THAN: &str = "TIEOUT_CASES_YOUNGER_THAN";
/// `--rule` of `cases`.
pub const CASES_RULE: &str = "TIEOUT_CASES_RULE";
/// `--policy` of `cases`.
pub const CASES_POLICY: &str = "TIEOUT_CASES_POLICY";
/// `--part-of` of `cases`.
pub const CASES_PART_OF: &str = "TIEOUT_CASES_PART_OF";
/// `--proposed` of `cases`.
pub const CASES_PROPOSED: &str = "TIEOUT_CASES_PROPOSED";
/// `--why` of `cases`.
pub const CASES_WHY: &str = "TIEOUT_CASES_WHY";
/// `--as` of `cases propose` and `cases undo`.
pub const CASES_AS: &str = "TIEOUT_CASES_AS";
/// `--object` of `cases propose` and `cases undo`.
pub const CASES_OBJECT: &str = "TIEOUT_CASES_OBJECT";
/// `--later` of `cases approve`.
pub const CASES_LATER: &str = "TIEOUT_CASES_LATER";
/// `--yes` of `cases`.
pub const CASES_YES: &str = "TIEOUT_CASES_YES";
/// `--seen` of `cases`.
pub const CASES_SEEN: &str = "TIEOUT_CASES_SEEN";
/// `--dry-run` of `cases`.
pub const CASES_DRY_RUN: &str = "TIEOUT_CASES_DRY_RUN";
/// `--split` of `cases merge`.
pub const CASES_SPLIT: &str = "TIEOUT_CASES_SPLIT";
/// `--format` of `cases export`.
pub const CASES_FORMAT: &str = "TIEOUT_CASES_FORMAT";
/// `--keep` of `cases purge`.
pub const CASES_KEEP: &str = "TIEOUT_CASES_KEEP";
/// `--attach` of `cases`.
pub const CASES_ATTACH: &str = "TIEOUT_CASES_ATTACH";
/// `--raw` of `cases show`.
pub const CASES_RAW: &str = "TIEOUT_CASES_RAW";
/// `--limit` of `runs list`.
pub const RUNS_LIMIT: &str = "TIEOUT_RUNS_LIMIT";
/// `--prefix` of `db roles`.
pub const ROLE_PREFIX: &str = "TIEOUT_ROLE_PREFIX";
/// `--dir` of `generate`.
pub const GENERATE_DIR: &str = "TIEOUT_GENERATE_DIR";
/// `--keep` of `db prune`.
pub const PRUNE_KEEP: &str = "TIEOUT_PRUNE_KEEP";
/// `--dry-run` of `db prune`.
pub const PRUNE_DRY_RUN: &str = "TIEOUT_PRUNE_DRY_RUN";
/// `--yes` of `db prune`.
pub const PRUNE_YES: &str = "TIEOUT_PRUNE_YES";
/// `--format` of `files inspect`.
pub const FILES_FORMAT: &str = "TIEOUT_FILES_FORMAT";
/// `--encoding` of `files inspect`.
pub const FILES_ENCODING: &str = "TIEOUT_FILES_ENCODING";
/// `--currency` of `files inspect`.
pub const FILES_CURRENCY: &str = "TIEOUT_FILES_CURRENCY";
/// `--account` of `files list`.
pub const FILES_ACCOUNT: &str = "TIEOUT_FILES_ACCOUNT";
/// `--source` of `files list`.
pub const FILES_SOURCE: &str = "TIEOUT_FILES_SOURCE";
/// `--state` of `files list`.
pub const FILES_STATE: &str = "TIEOUT_FILES_STATE";
/// `--limit` of `files list`.
pub const FILES_LIMIT: &str = "TIEOUT_FILES_LIMIT";
/// `--lines` of `files show`.
pub const FILES_LINES: &str = "TIEOUT_FILES_LINES";
/// `--reason` of `files release`.
pub const RELEASE_REASON: &str = "TIEOUT_RELEASE_REASON";
/// `--dry-run` of `files release`.
pub const RELEASE_DRY_RUN: &str = "TIEOUT_RELEASE_DRY_RUN";
/// `--account` of `ingest`.
pub const INGEST_ACCOUNT: &str = "TIEOUT_INGEST_ACCOUNT";
/// `--source` of `ingest`.
pub const INGEST_SOURCE: &str = "TIEOUT_INGEST_SOURCE";
/// `--sink` of `deliver`.
pub const DELIVER_SINK: &str = "TIEOUT_DELIVER_SINK";
/// `--now` of `deliver`.
pub const DELIVER_NOW: &str = "TIEOUT_DELIVER_NOW";
/// `--max-duration` of `deliver`.
pub const DELIVER_MAX_DURATION: &str = "TIEOUT_DELIVER_MAX_DURATION";
/// `--id` of `deliver`'s letters.
pub const DELIVER_ID: &str = "TIEOUT_DELIVER_ID";
/// `--limit` of `deliver list`.
pub const DELIVER_LIMIT: &str = "TIEOUT_DELIVER_LIMIT";
/// `--dry-run` of `deliver`'s letters.
pub const DELIVER_DRY_RUN: &str = "TIEOUT_DELIVER_DRY_RUN";
/// `--table` of `deliver`'s letters.
pub const DELIVER_TABLE: &str = "TIEOUT_DELIVER_TABLE";
/// `--event` of `deliver`'s letters.
pub const DELIVER_EVENT: &str = "TIEOUT_DELIVER_EVENT";
/// `--error` of `deliver`'s letters.
pub const DELIVER_ERROR: &str = "TIEOUT_DELIVER_ERROR";
/// `--older-than` of `deliver`'s letters.
pub const DELIVER_OLDER_THAN: &str = "TIEOUT_DELIVER_OLDER_THAN";
/// `--waiting` of `deliver`'s letters.
pub const DELIVER_WAITING: &str = "TIEOUT_DELIVER_WAITING";
/// `--reason` of `deliver purge` and `deliver merge`.
pub const DELIVER_REASON: &str = "TIEOUT_DELIVER_REASON";
/// `--why` of `pause`.
pub const PAUSE_WHY: &str = "TIEOUT_PAUSE_WHY";
/// Who called sudo, by sudo's own convention.
pub const SUDO_USER: &str = "SUDO_USER";
/// `--check` of `db status`.
pub const DB_CHECK: &str = "TIEOUT_DB_CHECK";
/// `--database` of `report verify`.
pub const REPORT_DATABASE: &str = "TIEOUT_REPORT_DATABASE";
/// `--dialect` of `report build`.
pub const REPORT_DIALECT: &str = "TIEOUT_REPORT_DIALECT";
/// `--listen` of `serve`.
pub const SERVE_LISTEN: &str = "TIEOUT_SERVE_LISTEN";
/// `--beyond-loopback` of `serve`.
pub const SERVE_BEYOND_LOOPBACK: &str = "TIEOUT_SERVE_BEYOND_LOOPBACK";
/// `--new-token` of `serve`.
pub const SERVE_NEW_TOKEN: &str = "TIEOUT_SERVE_NEW_TOKEN";
/// `--list` of `sandbox`.
pub const SANDBOX_LIST: &str = "TIEOUT_SANDBOX_LIST";
/// `--scenario` of `sandbox`.
pub const SANDBOX_SCENARIO: &str = "TIEOUT_SANDBOX_SCENARIO";
/// `--host` of `sandbox`.
pub const SANDBOX_HOST: &str = "TIEOUT_SANDBOX_HOST";
/// `--port` of `sandbox`.
pub const SANDBOX_PORT: &str = "TIEOUT_SANDBOX_PORT";
/// `--seed` of `sandbox`.
pub const SANDBOX_SEED: &str = "TIEOUT_SANDBOX_SEED";
/// Where the demo's files go.
pub const DEMO_DIR: &str = "TIEOUT_DEMO_DIR";
/// Where a user's own configuration lies, by the XDG convention.
pub const XDG_CONFIG_HOME: &str = "XDG_CONFIG_HOME";
/// The folder of credentials, by systemd's own convention.
pub const CREDENTIALS_DIRECTORY: &str = "CREDENTIALS_DIRECTORY";
/// The home folder, where [`XDG_CONFIG_HOME`] is not set.
pub const HOME: &str = "HOME";
