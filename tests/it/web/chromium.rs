//! A real browser without a head clicks through a decision: what people see, and what they press.
//!
//! It is spoken to by WebDriver, the W3C's own protocol: plain HTTP and JSON.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use super::{serve, shop_of_amount, shop_with, status, token_of, until};
use crate::support::need_env;

/// The name that WebDriver gives an element's id.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Looks at each figure, and at every box around it up to one that can be slid.
const CUT_OFF: &str = "
const lost = [];
for (const cell of document.querySelectorAll('td.num, td.num > *, dd, .amount, td.why')) {
  const range = document.createRange();
  range.selectNodeContents(cell);
  const text = range.getBoundingClientRect();
  if (text.width === 0) continue;
  let room = { left: 0, right: window.innerWidth };
  for (let box = cell; box; box = box.parentElement) {
    const how = getComputedStyle(box).overflowX;
    if (how === 'auto' || how === 'scroll') { room = null; break; }
    if (how !== 'visible') { room = box.getBoundingClientRect(); break; }
  }
  if (room && (text.left < room.left - 1 || text.right > room.right + 1)) {
    lost.push(cell.textContent);
  }
}
return lost;
";

/// One browser of its own, gone with this value.
struct Chromium {
    client: reqwest::Client,
    session: String,
    _folder: tempfile::TempDir,
}

impl Chromium {
    async fn start(width: u32, height: u32) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let args = [
            "--headless".to_owned(),
            // As root, which containers are, it starts in no other way.
            "--no-sandbox".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-quic".to_owned(),
            "--no-first-run".to_owned(),
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            "--disable-sync".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            format!("--window-size={width},{height}"),
            format!("--user-data-dir={}", folder.path().display()),
        ];
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": { "args": args },
        } } });
        let url = format!("{}/session", need_env("TEST_WEBDRIVER_URL"));
        let made: Value =
            client.post(&url).json(&wanted).send().await.unwrap().json().await.unwrap();
        let id = made["value"]["sessionId"].as_str().unwrap_or_else(|| panic!("{made}"));
        Self { session: format!("{url}/{id}"), client, _folder: folder }
    }

    async fn say(&self, method: Method, what: &str, body: Value) -> Result<Value, Value> {
        let place = match what {
            "" => self.session.clone(),
            what => format!("{}/{what}", self.session),
        };
        let request = self.client.request(method.clone(), place);
        let request = if method == Method::POST { request.json(&body) } else { request };
        let answer = request.send().await.unwrap();
        let is_fine = answer.status().is_success();
        let value: Value = answer.json().await.unwrap();
        let value = value["value"].clone();
        if is_fine { Ok(value) } else { Err(value) }
    }

    async fn told(&self, what: &str, body: Value) -> Value {
        let answer = self.say(Method::POST, what, body).await;
        answer.unwrap_or_else(|error| panic!("{what}: {error}"))
    }

    async fn open(&self, url: &str) {
        self.told("url", json!({ "url": url })).await;
    }

    /// The first element that a selector finds.
    async fn find(&self, css: &str) -> String {
        let wanted = json!({ "using": "css selector", "value": css });
        let mut tries = 0;
        let found = loop {
            tries += 1;
            // The next page may be on its way.
            match self.say(Method::POST, "element", wanted.clone()).await {
                Ok(found) => break found,
                Err(error) if tries < 100 && error["error"] == "no such element" => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(error) => panic!("{css}: {error}"),
            }
        };
        format!("element/{}", found[ELEMENT].as_str().unwrap_or_else(|| panic!("{css}: {found}")))
    }

    /// Does something with an element. One that went with its page, because the next page came
    /// between finding it and this, is looked for again there.
    async fn with(&self, css: &str, method: Method, what: &str, body: Value) -> Value {
        let mut tries = 0;
        loop {
            tries += 1;
            let element = self.find(css).await;
            match self.say(method.clone(), &format!("{element}/{what}"), body.clone()).await {
                Ok(value) => return value,
                Err(error) if tries < 20 && error["error"] == "stale element reference" => {}
                Err(error) => panic!("{what} {css}: {error}"),
            }
        }
    }

    async fn click(&self, css: &str) {
        self.with(css, Method::POST, "click", json!({})).await;
    }

    async fn type_in(&self, css: &str, text: &str) {
        self.with(css, Method::POST, "value", json!({ "text": text })).await;
    }

    /// What a person reads on the page.
    async fn text(&self) -> String {
        let text = self.with("body", Method::GET, "text", Value::Null).await;
        text.as_str().unwrap().to_owned()
    }

    /// As on a screen of this width; a window cannot be as narrow as a telephone.
    async fn is_wide(&self, width: u32) {
        let params = json!({
            "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false,
        });
        let cmd = "Emulation.setDeviceMetricsOverride";
        self.told("goog/cdp/execute", json!({ "cmd": cmd, "params": params })).await;
    }

    /// Amounts and counts of which something lies where nobody sees it and nothing slides to it.
    async fn cut_off(&self) -> Vec<String> {
        let said = self.told("execute/sync", json!({ "script": CUT_OFF, "args": [] })).await;
        said.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    }

    /// Whether the page is wider than the window.
    async fn is_too_wide(&self) -> bool {
        let script = "return document.documentElement.scrollWidth > window.innerWidth";
        let said = self.told("execute/sync", json!({ "script": script, "args": [] })).await;
        said.as_bool().unwrap()
    }

    async fn reads(&self, words: &str) {
        let mut text = String::new();
        for _ in 0..100 {
            text = self.text().await;
            if text.contains(words) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("`{words}` is not on the page: {text}");
    }

    async fn sign_in(&self, url: &str, name: &str) {
        self.open(&format!("{url}/cases")).await;
        self.type_in("#name", name).await;
        self.type_in("#secret", &token_of(name)).await;
        self.click("button.main").await;
        self.reads(&format!("signed in as {name}")).await;
    }

    async fn quit(self) {
        self.say(Method::DELETE, "", Value::Null).await.ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kick_is_clicked_and_its_end_is_read() {
    let shop = shop_with("pay_1", "").await;
    let site = serve(&shop);
    let mara = Chromium::start(500, 900).await;
    mara.sign_in(&site.url, "mara").await;
    mara.click("tbody th a").await;
    mara.type_in("#why-kick", "look again").await;
    assert!(!mara.is_too_wide().await, "the case");
    mara.click("#kick button").await;
    mara.reads("It is kicked").await;
    let show = ["cases", "show", "C-1"];
    let end = ": needs a person (duplicate_capture)";
    until("the kick ended", async || shop.tieout(&show, &[]).stdout.contains(end)).await;
    mara.open(&format!("{}/cases/C-1", site.url)).await;
    mara.reads("kicked by mara on the review page (look again) with run").await;
    mara.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_people_click_through_an_approval() {
    let shop = shop_with("pay_1", "").await;
    let site = serve(&shop);
    let mara = Chromium::start(1280, 1000).await;
    mara.sign_in(&site.url, "mara").await;
    mara.click("tbody th a").await;
    mara.reads("Evidence, side by side").await;
    mara.click("input[name=as][value=succeeded]").await;
    mara.click("#object option:nth-child(2)").await;
    mara.type_in("#why", "one order only").await;
    mara.click("form[action='/cases/act'] button.main").await;
    mara.reads("It is proposed.").await;
    mara.reads("It needs a second person").await;

    // The other one has a telephone.
    let jonas = Chromium::start(500, 900).await;
    jonas.sign_in(&site.url, "jonas").await;
    assert!(!jonas.is_too_wide().await, "the queue");
    jonas.click("tbody th a").await;
    jonas.reads("one order only").await;
    assert!(!jonas.is_too_wide().await, "the case");
    jonas.type_in("#why-approve", "checked").await;
    jonas.click("#proposed button.main").await;
    jonas.reads("It is approved.").await;
    until("the row is paid", async || status(&shop).await == "paid").await;
    jonas.open(&format!("{}/cases/C-1", site.url)).await;
    jonas.reads("It ended: succeeded").await;
    jonas.open(&format!("{}/runs", site.url)).await;
    jonas.click("tbody th a").await;
    jonas.reads("ties out").await;
    mara.quit().await;
    jonas.quit().await;
}

/// Ninety billions of each of three customers: what a report counts in rupiah, and no page may cut.
#[tokio::test(flavor = "multi_thread")]
async fn no_figure_is_cut_off_however_narrow_the_page() {
    let long = "[\"a shop with a long name\",\"pay_0000000000000000000000000000000000000001\"]";
    let shop = shop_of_amount(&["pay_1", "pay_2", long], 9_000_000_000_000, "").await;
    let owner = "a colleague with a long name ".repeat(3);
    let assigned = shop.tieout(&["cases", "assign", owner.trim(), "C-1", "--yes"], &[]);
    assert_eq!(assigned.code, Some(0), "{}", assigned.stderr);
    let runs = shop.tieout(&["runs", "list", "--json"], &[]).stdout;
    let run: Value = serde_json::from_str(runs.lines().next().unwrap()).unwrap();
    let run = format!("/runs/{}", run["run_id"].as_str().unwrap());
    let site = serve(&shop);
    let mara = Chromium::start(1280, 900).await;
    mara.sign_in(&site.url, "mara").await;
    let pages = ["/cases", "/cases/C-1", "/cases/C-3", "/runs", &run, "/reports", "preview"];
    for path in pages {
        if path == "preview" {
            mara.open(&format!("{}/cases", site.url)).await;
            mara.click("#which option[value=all]").await;
            mara.click("button.low").await;
            mara.reads("Yes?").await;
        } else {
            mara.open(&format!("{}{path}", site.url)).await;
        }
        for width in [1_280, 1_100, 1_024, 1_000, 768, 500, 360, 320] {
            mara.is_wide(width).await;
            assert_eq!(mara.cut_off().await, Vec::<String>::new(), "{path} at {width}");
            assert!(!mara.is_too_wide().await, "{path} at {width}");
        }
    }
    // The run's own page shows every figure without being slid, down to a telephone.
    mara.open(&format!("{}{run}", site.url)).await;
    for width in [1_280, 1_024, 768, 360] {
        mara.is_wide(width).await;
        let slid = "return [...document.querySelectorAll('.ties .scroll')]\
                    .some(box => box.scrollWidth > box.clientWidth)";
        let said = mara.told("execute/sync", json!({ "script": slid, "args": [] })).await;
        assert_eq!(said, false, "at {width}");
    }
    mara.reads("270,000,000,000.00").await;
    mara.quit().await;
}
