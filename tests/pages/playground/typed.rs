//! User input, such as completion, contradictions, invalid scenarios, and malicious links.

use airtcp_testkit::browser::Browser;
use airtcp_testkit::sample::sample;
use serde_json::json;

use super::{PAGE, airtcp, digests, load, open, reopen, requests, set_value, strings, wait_until_done};

fn troubles(browser: &mut Browser, field: &str) -> Vec<String> {
    browser.until(&format!("document.querySelector('#{field}-troubles').children.length"));
    strings(
        browser,
        &format!("[...document.querySelectorAll('#{field}-troubles li')].map((it) => it.textContent)"),
    )
}

/// Replaces the content of a field.
fn type_into(browser: &mut Browser, field: &str, text: &str) {
    browser.eval(&format!(
        "(() => {{ const it = document.getElementById({field:?}); it.focus(); it.select(); }})()"
    ));
    browser.insert(text);
}

/// All checks share one browser, because starting a browser takes longer than a check.
#[test]
fn input_is_completed_checked_and_run() {
    let mut browser = open("scene=1");
    invalid_sender_error_matches_command_line(&mut browser);
    scenario_error_links_to_its_line(&mut browser);
    invalid_fields_show_errors(&mut browser);
    sender_names_are_completed_by_keyboard(&mut browser);
    recipe_can_be_built_by_clicking(&mut browser);
    changing_one_answer_expands_alias(&mut browser);
    endless_run_can_be_stopped(&mut browser);
    changed_input_replaces_running_simulation(&mut browser);
    content_security_policy_blocks_fetches_and_scripts(&mut browser);
}

fn invalid_sender_error_matches_command_line(browser: &mut Browser) {
    reopen(browser, "preset=lossless&sender=newreno&sender=sack&bytes=20k");
    for typed in sample("wrong senders", ["newrno", "sack+reno", "newreno+min-rto=x", "sack@linnux", "+"], 2)
    {
        type_into(browser, "sender-1", typed);
        let message = troubles(browser, "sender-1").concat();
        let refused = airtcp(&["sim", "-s", "lossless", "--recipe", typed, "--bytes", "20k"]);
        let stderr = String::from_utf8(refused.stderr).unwrap();
        assert!(!message.is_empty() && stderr.contains(&message), "{typed}: {message:?} in {stderr:?}");
        assert_eq!(browser.eval("document.getElementById('sender-1').getAttribute('aria-invalid')"), "true");
        assert_eq!(
            browser.eval("document.getElementById('sender-0').getAttribute('aria-invalid')"),
            json!(null)
        );
        set_value(browser, "#sender-1", "sack", "input");
    }
}

fn scenario_error_links_to_its_line(browser: &mut Browser) {
    reopen(browser, "preset=lossless&sender=newreno&bytes=20k");
    browser.eval("document.querySelector('#edit').open = true");
    let text = "schema = 1\n[[stage]]\nkind = \"link\"\nboth = { rate = \"5 parsecs\" }\n";
    type_into(browser, "text", text);
    let message = troubles(browser, "text").concat();
    let file = std::env::temp_dir().join(format!("airtcp-wrong-{}.toml", std::process::id()));
    std::fs::write(&file, text).unwrap();
    let refused = airtcp(&["sim", "-s", file.to_str().unwrap(), "--bytes", "20k"]);
    std::fs::remove_file(&file).unwrap();
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert!(message.starts_with("4:"), "{message}");
    let position = message.split(": ").next().unwrap();
    assert!(stderr.contains(&format!(":{position}")), "{position} in {stderr}");
    let message = message.split_once(": ").unwrap().1;
    assert!(stderr.contains(message.split(['\n', '(']).next().unwrap().trim()), "{message} in {stderr}");
    browser.eval("document.querySelector('#text-troubles li').click()");
    let selected = browser.eval("(() => { const it = document.getElementById('text'); return it.value.slice(0, it.selectionStart).split('\\n').length; })()");
    assert_eq!(selected, 4);
}

fn invalid_fields_show_errors(browser: &mut Browser) {
    reopen(browser, "preset=gprs&sender=newreno&bytes=20k");
    browser.eval("document.querySelector('#edit').open = true");
    let invalid = [
        ("seed", "one"),
        ("bytes", "2Q"),
        ("time", "0s"),
        ("receiver", "no-such"),
        ("buffer", "0"),
        ("set", "wire.down.rte=1Mbit"),
    ];
    for (field, typed) in sample("wrong fields", invalid, 3) {
        type_into(browser, field, typed);
        let message = troubles(browser, field);
        assert_eq!(message.len(), 1, "{field}: {message:?}");
        set_value(browser, &format!("#{field}"), "", "input");
    }
}

fn sender_names_are_completed_by_keyboard(browser: &mut Browser) {
    reopen(browser, "preset=lossless&sender=newreno&bytes=20k");
    type_into(browser, "sender-0", "sack+lim");
    browser.until("!document.querySelector('.completions').hidden");
    let completion = browser.text(".completions li");
    assert!(completion.starts_with("sack+limited-transmit ") && completion.len() > 30, "{completion}");
    browser.eval("document.querySelector('#said').textContent = ''");
    browser.key("ArrowDown");
    browser.key("Enter");
    assert_eq!(browser.eval("document.getElementById('sender-0').value"), "sack+limited-transmit");
    wait_until_done(browser);
    assert!(browser.text("#command").contains("--recipe sack+limited-transmit"));
}

fn recipe_can_be_built_by_clicking(browser: &mut Browser) {
    reopen(browser, "preset=lossless&sender=newreno&bytes=20k");
    browser.eval("document.querySelector('.questions').open = true");
    browser.until("document.querySelectorAll('.question').length === 7");
    let line = browser.text("[data-question=repair] .faint");
    assert!(line.contains("RFC 6582"), "{line}");
    let value = "document.getElementById('sender-0').value";
    set_value(browser, "[data-question=repair] select", "sack", "change");
    assert_eq!(browser.eval(value), "sack");
    browser
        .until("document.querySelector('[data-question=repair] .faint')?.textContent.includes('RFC 6675')");
    set_value(browser, "[data-question=undo] select", "eifel", "change");
    assert_eq!(
        browser.eval(value).as_str().unwrap().split('+').collect::<std::collections::BTreeSet<_>>(),
        ["eifel", "sack"].into()
    );
    assert!(browser.text("#command").contains("eifel"));
}

fn changing_one_answer_expands_alias(browser: &mut Browser) {
    reopen(browser, "preset=lossless&sender=etcp&bytes=20k");
    browser.eval("document.querySelector('.questions').open = true");
    browser.until("document.querySelectorAll('.question').length === 7");
    set_value(browser, "[data-question=repair] select", "sack", "change");
    let sender = browser.eval("document.getElementById('sender-0').value");
    let words: Vec<_> = sender.as_str().unwrap().split('+').collect();
    assert!(
        words.contains(&"sack") && words.contains(&"transit-marks") && !words.contains(&"etcp"),
        "{words:?}"
    );
}

fn endless_run_can_be_stopped(browser: &mut Browser) {
    load(browser, "preset=leo&sender=newreno&time=10000000s");
    browser.until("document.querySelector('#said').textContent.startsWith('running')");
    let button = browser.center("#stop");
    browser.click(button, 1);
    browser.until("document.querySelector('#said').textContent === 'stopped'");
    assert_eq!(browser.eval("document.querySelector('#stop').disabled"), true);
    set_value(browser, "#time", "1s", "input");
    assert_eq!(digests(browser).len(), 1);
}

fn changed_input_replaces_running_simulation(browser: &mut Browser) {
    load(browser, "preset=leo&sender=newreno&time=10000000s");
    browser.until("document.querySelector('#said').textContent.startsWith('running')");
    set_value(browser, "#time", "2s", "input");
    assert!(browser.text("#command").ends_with("--for 2s"));
    assert_eq!(digests(browser).len(), 1);
}

#[test]
fn malicious_link_content_stays_text() {
    let mut browser = open("scene=1");
    let scenario = "schema%20%3D%201%0Adescription%20%3D%20%22%3Cimg%20src%3Dhttp%3A%2F%2F192.0.2.1%2Fx%20onerror%3Dalert(1)%3E%22%0A%5B%5Bstage%5D%5D%0Akind%20%3D%20%22link%22%0Aname%20%3D%20%22a%22%0Aboth.rate%20%3D%20%221Mbit%22";
    for address in [
        format!("text={scenario}&sender=newreno&bytes=20k"),
        "preset=%3Cscript%3Ealert(1)%3C/script%3E&sender=%3Cimg%20src%3Dx%3E&set=%3Csvg/onload%3Dalert(1)%3E".to_owned(),
        "text=extends%20%3D%20%22/etc/passwd%22&sender=sack".to_owned(),
        "%&%25=%zz&view=1,0&view=a,b&scene=99&at=-1&sender=sack&preset=lossless&bytes=1k&__proto__=x&constructor=y".to_owned(),
    ] {
        load(&mut browser, &address);
        browser.until("document.querySelector('#said').textContent.startsWith('done') || document.querySelector('.troubles li')");
        let inserted = browser.eval("document.images.length + document.querySelectorAll('body svg, body iframe, script:not([type])').length");
        assert_eq!(inserted, 0, "{address}");
        assert!(browser.events_of("Page.javascriptDialogOpening").is_empty());
        let page = format!("file://{}", PAGE.display());
        let own = [page.as_str(), "about:blank", "blob:", "data:"];
        let mut foreign = requests(&browser);
        foreign.retain(|url| !own.iter().any(|prefix| url.starts_with(prefix)));
        assert!(foreign.is_empty(), "{foreign:?}");
    }
}

fn content_security_policy_blocks_fetches_and_scripts(browser: &mut Browser) {
    reopen(browser, "scene=1");
    let refused = browser.eval(
        "Promise.all([fetch('http://127.0.0.1:9/').catch(() => 'refused'), fetch('data:,x').catch(() => 'refused'), \
         new Promise((done) => { const it = new Image(); it.onerror = () => done('refused'); it.onload = () => done('loaded'); it.src = 'http://127.0.0.1:9/x'; })])",
    );
    assert_eq!(refused, json!(["refused", "refused", "refused"]));
    let result = browser.eval(
        "(() => { const it = document.createElement('script'); it.textContent = 'window.ran = 1'; document.body.append(it); return window.ran ?? 'refused'; })()",
    );
    assert_eq!(result, "refused");
}
