use super::*;

fn lines() -> Lines {
    Lines::new(LineFormat {
        name: "edges".into(),
        ids: [0, 1],
        values: None,
        number: NumberType::Float64,
        separators: b",;".to_vec(),
        comments: b"#".to_vec(),
        base: 0,
        limits: None,
    })
}

#[test]
fn parts_are_whole_lines_and_all_of_them() {
    let text: Vec<u8> = (0..1000).flat_map(|line| format!("{line} 7\n").into_bytes()).collect();
    for count in [1, 2, 3, 7, 900, 2000] {
        let parts = parts_of(&text, count);
        let joined: Vec<u8> = parts.iter().flat_map(|(_, part)| part.to_vec()).collect();
        assert_eq!(joined, text);
        assert!(parts.iter().all(|(_, part)| part.is_empty() || part.ends_with(b"\n")));
    }
}

#[test]
fn threads_change_nothing_and_name_the_first_line() {
    let mut text: Vec<u8> = (0..200_000)
        .flat_map(|line| format!("{line},{}, 0.5\n", line * 7).into_bytes())
        .collect();
    let (one, four) = (lines().parse(&text, 1).unwrap(), lines().parse(&text, 4).unwrap());
    assert_eq!((&one.ids, &one.values), (&four.ids, &four.values));
    assert_eq!(one.ids[1][199_999], 199_999 * 7);
    assert_eq!(f64::from_bits(one.values[0][5]), 0.5);
    text.extend(b"1 2 x\n1 2\n");
    let mut lines = lines();
    lines.skip(10);
    let said = lines.parse(&text, 4).unwrap_err().to_string();
    assert_eq!(said, "edges: line 200011: '1 2 x': not all of it is numbers; numbers are kept apart by ',' here: say which by separators=");
}

#[test]
fn a_separator_has_a_word_on_either_side_and_any_white_space() {
    for text in ["0,1,2", " 0 , 1\t,\t2 ", "0 1 \t 2", "0,1,2\r", "0\t,\t1  , 2\n"] {
        let text = format!("\n  \n # ,,\n{text}\n\t\n{text}");
        let found = lines().parse(text.as_bytes(), 1).unwrap();
        assert_eq!(found.ids, [[0, 0], [1, 1]], "{text}");
        assert_eq!(found.values, [[2f64.to_bits(); 2]]);
    }
    let values = [None, Some(vec![]), Some(vec![2])];
    for gap in [
        "0,,1", "0, ,1", ",0,1", "0,1,", " , 0 1 2", "0,1,,2", "0 1 2 ,", "0,1,2,\r", ",", " ,, ", ",# x",
    ] {
        for (before, line) in [("", 1), ("# a\n0,1,2\n", 3), ("0 1\n\n", 3)] {
            for values in &values {
                let mut lines = lines();
                lines.format.values.clone_from(values);
                let text = format!("{before}{gap}\n0,1,2\n");
                let said = match lines.parse(text.as_bytes(), 1) {
                    Ok(found) => panic!("{text}: {found:?}"),
                    Err(error) => error.to_string(),
                };
                let wanted = format!("edges: line {line}: '{}': an empty field", gap.trim());
                // A first line of two words has no third one.
                let is_short = line == 3 && before.starts_with('0') && *values == Some(vec![2]);
                assert!(
                    said == wanted || is_short && said.contains("line 1: "),
                    "{text}: {said}"
                );
            }
        }
    }
    // Among words that nobody reads, too; white space as a separator is white space.
    let mut other = lines();
    (other.format.ids, other.format.values) = ([1, 3], Some(vec![]));
    let said = other.parse(b"a,1,b,2\na,1,,2\n", 1).unwrap_err().to_string();
    assert_eq!(said, "edges: line 2: 'a,1,,2': an empty field");
    let mut tabs = lines();
    tabs.format.separators = b"\t".to_vec();
    assert_eq!(tabs.parse(b"0\t\t1\t\n", 1).unwrap().ids, [[0], [1]]);
}

#[test]
fn a_comma_in_a_number_makes_no_other_number() {
    for text in [
        "0;1;2,5",
        "1,000 2,000",
        "0 1 2,5",
        "0 1,2",
        "0;1,2",
        "0\t1\t1,234.5",
        "1 000;2 000",
        "0,1,2 5",
        "0 1 2\n0 1 2,5",
        "0,1,2\n0 1 2",
        "0;1;2\n0,1,2",
        "0 1 2\n0,1,2",
        "0;1;2\n0;1;2,5",
    ] {
        let said = match lines().parse(text.as_bytes(), 1) {
            Ok(found) => panic!("{text}: {found:?}"),
            Err(error) => error.to_string(),
        };
        let number = text.lines().count();
        assert!(said.starts_with(&format!("edges: line {number}: ")), "{said}");
        assert!(said.ends_with("say which by separators="), "{said}");
    }
    // Where nobody reads the word, it may be anything.
    let mut dated = lines();
    dated.format.values = Some(vec![]);
    let text = b"0;1;2,5\n1;2;10 000 or more\n";
    assert_eq!(dated.parse(text, 1).unwrap().ids, [[0, 1], [1, 2]]);
    let found = lines().parse(b"0;1;2.5\n1 ; 2\t; 3.5 \r\n", 1).unwrap();
    assert_eq!(found.values, [[2.5f64.to_bits(), 3.5f64.to_bits()]]);
}

#[test]
fn a_byte_order_mark_is_no_number() {
    let mut marked = lines();
    assert_eq!(
        marked.parse(b"\xef\xbb\xbf0,1\n1,2\n", 1).unwrap().ids,
        [[0, 1], [1, 2]]
    );
    // Elsewhere than in front of the file it is one of the bytes that are none.
    assert!(marked.parse(b"\xef\xbb\xbf0,1\n", 1).is_err());
    assert_eq!(lines().parse(b"\xef\xbb\xbf# a\n0 1\n", 1).unwrap().ids, [[0], [1]]);
}

#[test]
fn whole_numbers_have_all_of_their_bits() {
    let mut whole = lines();
    whole.format.number = NumberType::Uint64;
    let found = whole.parse(b"0 1 18446744073709551615\n", 1).unwrap();
    assert_eq!(found.values, [[u64::MAX]]);
    assert!(whole.parse(b"0 1 -1\n", 1).is_err());
    let mut whole = lines();
    whole.format.number = NumberType::Int64;
    assert_eq!(whole.parse(b"0 1 -1\n", 1).unwrap().values, [[u64::MAX]]);
    assert!(whole.parse(b"0 1 18446744073709551615\n", 1).is_err());
}

#[test]
fn numbers_of_any_length_before_any_byte() {
    let mut number = 1u64;
    for length in 1..=19 {
        number = number.wrapping_mul(10) % 10u64.pow(length) + u64::from(length % 10);
        let written = format!("{number:0width$}", width = length as usize);
        for byte in (0..=255u8).filter(|byte| !byte.is_ascii_digit()) {
            for behind in [0, 1, 9] {
                let text = [written.as_bytes(), &[byte].repeat(behind)].concat();
                assert_eq!(digits(&text, 0), Some((number, length as usize)), "{written} {byte}");
            }
        }
    }
    assert_eq!(digits(b"x1234567890", 0), None);
    assert_eq!(digits(b"12345678901234567890 ", 0), None);
}

#[test]
fn numbers_that_have_no_room_are_none() {
    assert!(lines().parse(b"9999999999999999999 1\n", 1).is_ok());
    assert!(lines().parse(b"10000000000000000000 1\n", 1).is_err());
    assert!(lines().parse(b"1\n", 1).is_err());
    assert!(lines().parse(b"1 -2\n", 1).is_err());
    assert!(lines().parse(b"1, 2", 1).is_ok());
}

#[test]
fn carriage_returns_end_lines_with_newlines_only() {
    for (text, line) in [
        ("0 1\r1 2\r2 3\r", 1),
        ("# a comment\r0 1\n", 1),
        ("0 1\r\n1\r2\r\n", 2),
        ("0 1\n# a\r1 2\n", 2),
        ("0 1\r\r\n", 1),
    ] {
        let said = lines().parse(text.as_bytes(), 1).unwrap_err().to_string();
        assert!(said.starts_with(&format!("edges: line {line}: ")), "{said}");
        assert!(
            said.ends_with("a carriage return ends no line without a newline"),
            "{said}"
        );
    }
    for text in ["0 1\r\n1 2\r\n", "0 1\n1 2\r", "\r\n0 1\r\n1 2"] {
        assert_eq!(lines().parse(text.as_bytes(), 1).unwrap().ids, [[0, 1], [1, 2]]);
    }
}

/// Room is made for the words there are, not for those that are wanted.
#[test]
fn words_far_behind_a_line_are_refused() {
    for (ids, values, wanted) in [
        ([0, 1], Some(vec![1_000_000_000_000]), 1_000_000_000_001),
        ([0, usize::MAX], None, usize::MAX),
    ] {
        let mut lines = lines();
        (lines.format.ids, lines.format.values) = (ids, values);
        let said = lines.parse(b"# none\n1 2\n", 1).unwrap_err().to_string();
        assert_eq!(said, format!("edges: line 2: '1 2': 2 numbers, not {wanted}"));
    }
}
