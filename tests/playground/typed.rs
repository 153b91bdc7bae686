//! User input: completion, contradictions, invalid scenarios, and malicious links.

use airtcp_testkit::browser::Browser;
use airtcp_testkit::sample::sample;
use serde_json::json;

use super::{PAGE, airtcp, change, digests, done, load, open, reopen, strings};

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
        let said = troubles(browser, "sender-1").concat();
        let refused = airtcp(&["sim", "-s", "lossless", "--recipe", typed, "--bytes", "20k"]);
        let stderr = String::from_utf8(refused.stderr).unwrap();
        assert!(!said.is_empty() && stderr.contains(&said), "{typed}: {said:?} in {stderr:?}");
        assert_eq!(browser.eval("document.getElementById('sender-1').getAttribute('aria-invalid')"), "true");
        assert_eq!(
            browser.eval("document.getElementById('sender-0').getAttribute('aria-invalid')"),
            json!(null)
        );
        change(
            browser,
            "(() => { const it = document.getElementById('sender-1'); it.value = 'sack'; it.dispatchEvent(new Event('input')); })()",
        );
    }
}

fn scenario_error_links_to_its_line(browser: &mut Browser) {
    reopen(browser, "preset=lossless&sender=newreno&bytes=20k");
    browser.eval("document.querySelector('#edit').open = true");
    let text = "schema = 1\n[[stage]]\nkind = \"link\"\nboth = { rate = \"5 parsecs\" }\n";
    type_into(browser, "text", text);
    let said = troubles(browser, "text").concat();
    let file = std::env::temp_dir().join(format!("airtcp-wrong-{}.toml", std::process::id()));
    std::fs::write(&file, text).unwrap();
    let refused = airtcp(&["sim", "-s", file.to_str().unwrap(), "--bytes", "20k"]);
    std::fs::remove_file(&file).unwrap();
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert!(said.starts_with("4:"), "{said}");
    let place = said.split(": ").next().unwrap();
    assert!(stderr.contains(&format!(":{place}")), "{place} in {stderr}");
    let message = said.split_once(": ").unwrap().1;
    assert!(stderr.contains(message.split(['\n', '(']).next().unwrap().trim()), "{message} in {stderr}");
    browser.eval("document.querySelector('#text-troubles li').click()");
    let selected = browser.eval("(() => { const it = document.getElementById('text'); return it.value.slice(0, it.selectionStart).split('\\n').length; })()");
    assert_eq!(selected, 4);
}

fn invalid_fields_show_errors(browser: &mut Browser) {
    reopen(browser, "preset=gprs&sender=newreno&bytes=20k");
    browser.eval("document.querySelector('#edit').open = true");
    let wrong = [
        ("seed", "one"),
        ("bytes", "2Q"),
        ("time", "0s"),
        ("receiver", "no-such"),
        ("buffer", "0"),
        ("set", "wire.down.rte=1Mbit"),
    ];
    for (field, typed) in sample("wrong fields", wrong, 3) {
        type_into(browser, field, typed);
        let said = troubles(browser, field);
        assert_eq!(said.len(), 1, "{field}: {said:?}");
        change(
            browser,
            &format!(
                "(() => {{ const it = document.getElementById({field:?}); it.value = ''; it.dispatchEvent(new Event('input')); }})()"
            ),
        );
    }
}

fn sender_names_are_completed_by_keyboard(browser: &mut Browser) {
    reopen(browser, "preset=lossless&sender=newreno&bytes=20k");
    type_into(browser, "sender-0", "sack+lim");
    browser.until("!document.querySelector('.completions').hidden");
    let offered = browser.text(".completions li");
    assert!(offered.starts_with("sack+limited-transmit ") && offered.len() > 30, "{offered}");
    browser.eval("document.querySelector('#said').textContent = ''");
    browser.key("ArrowDown");
    browser.key("Enter");
    assert_eq!(browser.eval("document.getElementById('sender-0').value"), "sack+limited-transmit");
    done(browser);
    assert!(browser.text("#command").contains("--recipe sack+limited-transmit"));
}

fn recipe_can_be_built_by_clicking(browser: &mut Browser) {
    reopen(browser, "preset=lossless&sender=newreno&bytes=20k");
    browser.eval("document.querySelector('.questions').open = true");
    browser.until("document.querySelectorAll('.question').length === 7");
    let line = browser.text("[data-question=repair] .faint");
    assert!(line.contains("RFC 6582"), "{line}");
    let value = "document.getElementById('sender-0').value";
    change(
        browser,
        "(() => { const it = document.querySelector('[data-question=repair] select'); it.value = 'sack'; it.dispatchEvent(new Event('change')); })()",
    );
    assert_eq!(browser.eval(value), "sack");
    browser
        .until("document.querySelector('[data-question=repair] .faint')?.textContent.includes('RFC 6675')");
    change(
        browser,
        "(() => { const it = document.querySelector('[data-question=undo] select'); it.value = 'eifel'; it.dispatchEvent(new Event('change')); })()",
    );
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
    change(
        browser,
        "(() => { const it = document.querySelector('[data-question=repair] select'); it.value = 'sack'; it.dispatchEvent(new Event('change')); })()",
    );
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
    let place = browser.center("#stop");
    browser.click(place, 1);
    browser.until("document.querySelector('#said').textContent === 'stopped'");
    assert_eq!(browser.eval("document.querySelector('#stop').disabled"), true);
    change(
        browser,
        "(() => { const it = document.getElementById('time'); it.value = '1s'; it.dispatchEvent(new Event('input')); })()",
    );
    assert_eq!(digests(browser).len(), 1);
}

fn changed_input_replaces_running_simulation(browser: &mut Browser) {
    load(browser, "preset=leo&sender=newreno&time=10000000s");
    browser.until("document.querySelector('#said').textContent.startsWith('running')");
    change(
        browser,
        "(() => { const it = document.getElementById('time'); it.value = '2s'; it.dispatchEvent(new Event('input')); })()",
    );
    assert!(browser.text("#command").ends_with("--for 2s"));
    assert_eq!(digests(browser).len(), 1);
}

#[test]
fn malicious_link_content_stays_text() {
    let mut browser = open("scene=1");
    let evil = "schema%20%3D%201%0Adescription%20%3D%20%22%3Cimg%20src%3Dhttp%3A%2F%2F192.0.2.1%2Fx%20onerror%3Dalert(1)%3E%22%0A%5B%5Bstage%5D%5D%0Akind%20%3D%20%22link%22%0Aname%20%3D%20%22a%22%0Aboth.rate%20%3D%20%221Mbit%22";
    for address in [
        format!("text={evil}&sender=newreno&bytes=20k"),
        "preset=%3Cscript%3Ealert(1)%3C/script%3E&sender=%3Cimg%20src%3Dx%3E&set=%3Csvg/onload%3Dalert(1)%3E".to_owned(),
        "text=extends%20%3D%20%22/etc/passwd%22&sender=sack".to_owned(),
        "%&%25=%zz&view=1,0&view=a,b&scene=99&at=-1&sender=sack&preset=lossless&bytes=1k&__proto__=x&constructor=y".to_owned(),
    ] {
        load(&mut browser, &address);
        browser.until("document.querySelector('#said').textContent.startsWith('done') || document.querySelector('.troubles li')");
        let inserted = browser.eval("document.images.length + document.querySelectorAll('body svg, body iframe, script:not([type])').length");
        assert_eq!(inserted, 0, "{address}");
        assert!(browser.events_of("Page.javascriptDialogOpening").is_empty());
        let asked: Vec<String> = browser
            .events_of("Network.requestWillBeSent")
            .iter()
            .map(|it| it["request"]["url"].as_str().unwrap().to_owned())
            .filter(|url| !url.starts_with(&format!("file://{}", PAGE.display())) && url != "about:blank" && !url.starts_with("blob:") && !url.starts_with("data:"))
            .collect();
        assert!(asked.is_empty(), "{asked:?}");
    }
}

fn content_security_policy_blocks_fetches_and_scripts(browser: &mut Browser) {
    reopen(browser, "scene=1");
    let refused = browser.eval(
        "Promise.all([fetch('http://127.0.0.1:9/').catch(() => 'refused'), fetch('data:,x').catch(() => 'refused'), \
         new Promise((done) => { const it = new Image(); it.onerror = () => done('refused'); it.onload = () => done('loaded'); it.src = 'http://127.0.0.1:9/x'; })])",
    );
    assert_eq!(refused, json!(["refused", "refused", "refused"]));
    let ran = browser.eval(
        "(() => { const it = document.createElement('script'); it.textContent = 'window.ran = 1'; document.body.append(it); return window.ran ?? 'refused'; })()",
    );
    assert_eq!(ran, "refused");
}
