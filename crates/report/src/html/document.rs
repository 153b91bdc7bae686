//! A complete HTML file with a body, a style sheet and a script. It fetches nothing, and its content security
//! policy forbids it.

use sha2::{Digest, Sha256};

use super::columns::base64;
use super::table::escape;

/// The parts of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Document<'a> {
    /// The title of the window, as plain text.
    pub title: &'a str,
    /// The style sheet.
    pub style: &'a str,
    /// The HTML of the body without the script.
    pub body: &'a str,
    /// The only script that may run, for example from [`bundle`](super::modules::bundle). The policy contains
    /// its hash.
    pub script: &'a str,
    /// Additional permissions of the policy: pairs of a directive and a source, such as `("worker-src",
    /// "blob:")`.
    pub additional_sources: &'a [(&'a str, &'a str)],
}

impl Document<'_> {
    /// Returns the whole file.
    pub fn html(&self) -> String {
        let Self { style, body, script, .. } = self;
        let (title, policy) = (escape(self.title), self.policy());
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <link rel=\"icon\" href=\"data:,\">\n\
             <title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n\
             {body}<script type=\"module\">{script}</script>\n</body>\n</html>\n"
        )
    }

    fn policy(&self) -> String {
        let hash = format!("'sha256-{}'", base64(&Sha256::digest(self.script.as_bytes())));
        let mut directives = vec![
            ("default-src", "'none'".to_owned()),
            ("script-src", hash),
            ("style-src", "'unsafe-inline'".to_owned()),
            ("img-src", "data:".to_owned()),
            ("base-uri", "'none'".to_owned()),
            ("form-action", "'none'".to_owned()),
        ];
        for (name, source) in self.additional_sources {
            match directives.iter_mut().find(|(known, _)| known == name) {
                // `'none'` cannot be combined with other sources.
                Some((_, sources)) if sources == "'none'" => *sources = (*source).to_owned(),
                Some((_, sources)) => *sources += &format!(" {source}"),
                None => directives.push((name, (*source).to_owned())),
            }
        }
        let directives: Vec<_> =
            directives.iter().map(|(name, sources)| format!("{name} {sources}")).collect();
        directives.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additional_csp_sources_extend_default_policy() {
        let also = [
            ("script-src", "'wasm-unsafe-eval'"),
            ("worker-src", "blob:"),
            ("worker-src", "data:"),
            ("base-uri", "'self'"),
        ];
        let policy = Document { script: "1", additional_sources: &also, ..Document::default() }.policy();
        assert_eq!(
            policy,
            "default-src 'none'; script-src 'sha256-a4ayc/80/OGda4BO/1o/V0etpOqiLx1JwB5S3beHW0s=' 'wasm-unsafe-eval'; \
             style-src 'unsafe-inline'; img-src data:; base-uri 'self'; form-action 'none'; worker-src blob: data:"
        );
    }

    #[test]
    fn title_is_escaped_and_script_is_module() {
        let html = Document { title: "<i>", script: "let a;", ..Document::default() }.html();
        assert!(html.contains("<title>&lt;i&gt;</title>"), "{html}");
        assert!(html.contains("<script type=\"module\">let a;</script>"), "{html}");
    }
}
