use super::*;

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes(), &length[..], body, &length].concat()
}

fn section() -> Vec<u8> {
    block(SECTION, &[&BYTE_ORDER.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat())
}

/// An interface block for raw IP with these options.
fn interface_block(options: &[u8]) -> Vec<u8> {
    block(INTERFACE, &[&[101, 0, 0, 0, 0, 0, 1, 0], options].concat())
}

fn frame_block(units: u64, data: [u8; 4]) -> Vec<u8> {
    let words = [0, (units >> 32) as u32, units as u32, 4, 1500];
    let words: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
    block(ENHANCED_PACKET, &[&words[..], &data].concat())
}

#[derive(Debug, PartialEq)]
enum Read {
    Frame(u64, i64, Vec<u8>),
    Garbage(u64, String),
    Damaged(u64),
}

fn read(file: &[u8]) -> Vec<Read> {
    let (mut reader, mut number, mut found) = (Reader::new(file), 0, Vec::new());
    loop {
        found.push(match reader.read(&mut number) {
            Next::Frame(frame) => Read::Frame(frame.number, frame.at.0, frame.data.to_vec()),
            Next::Flaw { frame, detail, .. } => Read::Garbage(frame, detail),
            Next::Damaged { frame, .. } => {
                found.push(Read::Damaged(frame));
                return found;
            }
            _ => return found,
        });
    }
}

#[test]
fn times_use_interface_resolution_and_offset() {
    for (options, units, nanos) in [
        (&[][..], 1_500_000, 1_500_000_000),
        (&[9, 0, 1, 0, 9, 0, 0, 0], 1_500_000_000, 1_500_000_000),
        (&[9, 0, 1, 0, 0, 0, 0, 0], 2, 2_000_000_000),
        (&[9, 0, 1, 0, 12, 0, 0, 0], 1_500_000_000_999, 1_500_000_000),
        // A resolution of 2^-10 s, and an offset of 100 s.
        (&[9, 0, 1, 0, 0x8a, 0, 0, 0, 14, 0, 8, 0, 100, 0, 0, 0, 0, 0, 0, 0], 1536, 101_500_000_000),
        // Nothing counts after the end of options.
        (&[0, 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0], 1_500_000, 1_500_000_000),
        // Resolutions that are too fine or values that are too large saturate.
        (&[9, 0, 1, 0, 127, 0, 0, 0], u64::MAX, 0),
        (&[9, 0, 1, 0, 0, 0, 0, 0], u64::MAX, i64::MAX),
    ] {
        let file = [section(), interface_block(options), frame_block(units, [1, 2, 3, 4])].concat();
        assert_eq!(read(&file), [Read::Frame(1, nanos, vec![1, 2, 3, 4])], "{options:?}");
    }
}

#[test]
fn frames_after_garbage_are_read() {
    let begin = [section(), interface_block(&[]), frame_block(1, [1; 4])].concat();
    // The length of the garbage is odd, unlike the length of any block.
    let file = [&begin[..], &[0x5a; 777], &frame_block(2, [2; 4]), &frame_block(3, [3; 4])].concat();
    let expected = [
        Read::Frame(1, 1000, vec![1; 4]),
        Read::Garbage(2, "777 bytes".to_owned()),
        Read::Frame(2, 2000, vec![2; 4]),
        Read::Frame(3, 3000, vec![3; 4]),
    ];
    assert_eq!(read(&file), expected);
    // A frame of an interface that does not exist.
    let mut wrong = frame_block(2, [2; 4]);
    wrong[8] = 9;
    let found = read(&[&begin[..], &wrong, &frame_block(3, [3; 4])].concat());
    assert!(
        matches!(found[..], [Read::Frame(1, ..), Read::Garbage(2, _), Read::Frame(2, 3000, _)]),
        "{found:?}"
    );
}

#[test]
fn truncated_file_yields_complete_frames() {
    let file = [section(), interface_block(&[]), frame_block(1, [1; 4]), frame_block(2, [2; 4])].concat();
    let second = file.len() - frame_block(2, [2; 4]).len();
    for end in second + 1..file.len() {
        let found = read(&file[..end]);
        assert_eq!(found, [Read::Frame(1, 1000, vec![1; 4]), Read::Damaged(2)], "{end}");
    }
    assert_eq!(read(&file[..second]).len(), 1);
}
