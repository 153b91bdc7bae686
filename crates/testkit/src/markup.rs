//! Checks text with tags, such as SVG and HTML.

/// Checks that tags are closed in the right order, that attributes have both quotes, and that every `&`
/// begins an entity and every `<` a tag.
///
/// # Panics
/// If the text is not well formed.
pub fn well_formed(text: &str) {
    let mut open = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        assert!(!before.contains('>'), "{before}");
        for entity in before.split('&').skip(1) {
            let name = entity.split(';').next().unwrap();
            assert!(["amp", "lt", "gt", "quot"].contains(&name), "{before}");
        }
        let end = tag.find('>').expect("a tag ends");
        let inside = &tag[1..end];
        assert!(inside.matches('"').count().is_multiple_of(2) && !inside[1..].contains('<'), "{inside}");
        match inside.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name)),
            None if inside.ends_with('/') => {}
            None => open.push(inside.split(' ').next().unwrap()),
        }
        rest = &tag[end + 1..];
    }
    assert!(open.is_empty() && rest.trim().is_empty(), "{open:?} {rest}");
}
