use super::*;

fn names(name: &str) -> Result<u64, String> {
    match name {
        "tcpi_snd_cwnd" => Ok(10),
        "tcpi_rtt" => Ok(100_000),
        _ => Err(format!("`{name}` is unknown")),
    }
}

/// Runs code and returns what it wrote, or the error with its line.
fn run(code: &str) -> Result<BlockOutput, String> {
    let mut written = BlockOutput::default();
    let located = |(line, message): Problem| format!("{line}: {message}");
    let block = Block::parse(code).map_err(located)?;
    block.run(&mut Variables::new(), &names, &mut written).map_err(located)?;
    Ok(written)
}

fn error(code: &str) -> String {
    run(code).expect_err(code)
}

/// Returns the lines that `print` wrote.
fn printed(code: &str) -> Vec<String> {
    run(code).unwrap_or_else(|error| panic!("{code}: {error}")).output
}

#[test]
fn expressions_follow_python_semantics() {
    for code in [
        "assert tcpi_snd_cwnd == 10",
        "assert 1 + 2 * 3 == 7 and not 2 > 3",
        "assert (1 + 2) * 3 == 9, 'a message (with; a parenthesis'; assert True",
        "assert 9 < tcpi_snd_cwnd <= 10 < 11",
        "assert not 9 < tcpi_snd_cwnd < 10",
        "assert -7 // 2 == -4 and -7 % 3 == 2 and 7 % -3 == -2 and 7 / 2 == 3.5",
        "assert -7.5 // 2 == -4 and -7.5 % 2 == 0.5",
        "assert 2 ** 3 ** 2 == 512 and -2 ** 2 == -4 and 2 ** -1 == 0.5",
        "assert abs(tcpi_rtt - 101000) <= 1000 or False",
        "assert min(3, 2, 4) == 2 and max((1, 2)) == 2 and len('abc') == 3 and len([1, 2]) == 2",
        "assert int(3.9) == 3 and int(-3.9) == -3 and int('12') == 12 and int(True) == 1",
        "assert not 1 == 2",
        "assert 5 - 2 - 1 == 2",
        "assert 6 & 3 == 2 or True",
        "assert (6 & 3) == 2 and (6 | 3) == 7 and (6 ^ 3) == 5 and ~6 == -7",
        "assert 1 << 4 | 1 == 17 and 256 >> 4 == 16",
        "assert 0xff == 255 and 0b101 == 5 and 0o17 == 15 and 1_000 == 1000 and 1.5e3 == 1500",
        "assert (10 if tcpi_rtt > 5 else 20) == 10 and (1 if False else 2 if False else 3) == 3",
        "assert tcpi_snd_cwnd in (9, 10) and 3 not in [1, 2] and 'b' in 'abc' and 1 not in ()",
        "assert (1, 2) < (1, 3) and (1, 2) == (1, 2.0) and [1] != (1,) and 'a' < 'b'",
        "assert (None or 0 or 7) == 7 and (1 and 2) == 2 and None == None",
        "assert 'a' 'b' == \"ab\" and 'x' + 'y' == 'xy' and (1,) + (2,) == (1, 2)",
        "assert 9007199254740993 - 9007199254740992 == 1",
    ] {
        run(code).unwrap_or_else(|error| panic!("{code}: {error}"));
    }
}

#[test]
fn statements_may_span_lines() {
    for code in [
        "\n  assert True; assert 0xff == 255 # comment\n assert (1 ==\n 1)\n",
        " assert(tcpi_snd_cwnd == 10) ",
        "assert (tcpi_snd_cwnd == 10 and # comment )\n\n tcpi_rtt == 100000)",
        "assert tcpi_snd_cwnd == 10 and \\\n  tcpi_rtt == 100000, \\\n 'message'",
        "assert tcpi_snd_cwnd == \\\r\n 10",
        "assert min(1,\n  2,\n) == 1, (\n'message'\n)",
        "# nothing\n\n",
        "",
    ] {
        run(code).unwrap_or_else(|error| panic!("{code}: {error}"));
    }
}

#[test]
fn assignments_and_conditions_select_output() {
    assert_eq!(
        printed("x = tcpi_snd_cwnd * 2; x += 1; print(x, x / 2, 'x is', x > 1)"),
        ["21 10.5 x is True"]
    );
    assert_eq!(printed("a = b = 3\nc, d = a, b + 1\n(a, b) = [d, c]\nprint(a, b, c, d)"), ["4 3 3 4"]);
    assert_eq!(printed("print()\nprint((1,), ('a', 2.0), [None])"), ["", "(1,) ('a', 2.0) [None]"]);
    assert_eq!(printed("print('%d of %s: %.2f%%, %x' % (3, 'five', 60, 255))"), ["3 of five: 60.00%, ff"]);
    let code = "
        if tcpi_snd_cwnd > 10:
            print('large')
        elif tcpi_snd_cwnd == 10:
            if tcpi_rtt > 1:
                print('both')
                pass
            else: print('no')
            print('ten')
        else:
            print('small')
        print('end')";
    assert_eq!(printed(code), ["both", "ten", "end"]);
    assert_eq!(printed("if tcpi_rtt == 1: print(1); print(2)\nelse: print(3); print(4)"), ["3", "4"]);
}

#[test]
fn variables_persist_between_blocks() {
    let (mut variables, mut written) = (Variables::new(), BlockOutput::default());
    let mut run = |code| Block::parse(code).unwrap().run(&mut variables, &names, &mut written);
    run("before = tcpi_snd_cwnd").unwrap();
    run("assert before == 10").unwrap();
    assert!(run("assert before == 9").is_err());
}

#[test]
fn failed_assertion_shows_values_and_message() {
    for (code, message) in [
        ("assert tcpi_snd_cwnd == 9", "0: `assert tcpi_snd_cwnd == 9` does not hold: tcpi_snd_cwnd is 10"),
        (
            "x = 3\n\nassert (x ==\n   4), 'x is wrong'",
            "2: `assert (x == 4), 'x is wrong'` does not hold: x is 3, x is wrong",
        ),
        ("assert x == 1", "0: `x` is unknown"),
        ("assert 1 == 2", "0: `assert 1 == 2` does not hold"),
        (
            "if True:\n  assert False, tcpi_rtt",
            "1: `assert False, tcpi_rtt` does not hold: tcpi_rtt is 100000",
        ),
    ] {
        assert_eq!(error(code), message);
    }
}

#[test]
fn asserted_tuple_is_noted() {
    let notes = run("assert (tcpi_snd_cwnd == 9, 'message')").unwrap().notes;
    assert_eq!(notes, ["`assert (tcpi_snd_cwnd == 9, 'message')` always holds, because it asserts a tuple"]);
}

#[test]
fn unsupported_python_is_named_with_line() {
    let rest = "is not supported here; airtcp supports assert, assignments, if, pass and print";
    for (code, message) in [
        ("\nimport math", format!("1: `import` {rest}")),
        ("x = 1\nfor i in (1, 2):\n  pass", format!("1: `for` {rest}")),
        ("print 1", "0: `print` needs parentheses".to_owned()),
        ("print(1, end='')", "0: expected `,`, found `=`".to_owned()),
        (
            "assert round(1.5) == 2",
            "0: unknown function `round`; airtcp has abs, int, len, max, min".to_owned(),
        ),
        ("assert x[0]", "0: `[` after a value is not supported".to_owned()),
        ("assert {1}", "0: `{` is not supported: airtcp has no dictionaries and sets".to_owned()),
        (
            "x = [i for i in (1, 2)]",
            "0: `for` is not supported: airtcp has no loops and comprehensions".to_owned(),
        ),
        ("assert\\\n math.pi", "1: `.` is not supported".to_owned()),
        ("assert f'x'", "0: strings with the prefix `f` are not supported".to_owned()),
        ("assert '''x'''", "0: strings in triple quotes are not supported".to_owned()),
        ("assert 1 is 1", "0: `is` is not supported; use `==`".to_owned()),
        ("assert lambda: 1", "0: expected a value, found `lambda`".to_owned()),
        ("else: pass", "0: `else` without `if`".to_owned()),
        ("\nassert 1 +\nassert 2", "1: expected a value, found the end of the line".to_owned()),
        ("assert (1", "0: expected `,`, found the end of the code".to_owned()),
        ("assert 1 2", "0: unexpected `2`".to_owned()),
        ("assert 1 @ 2", "0: `@` is not supported".to_owned()),
        ("1 = x", "0: expected a name, or several separated by commas, before `=`".to_owned()),
        ("if True:\nassert 1", "0: expected an indented block after `:`".to_owned()),
        ("if True:\n  pass\n    pass", "2: the indentation of this line fits no block".to_owned()),
        ("if True:\n    pass\n  pass", "2: the indentation of this line fits no block".to_owned()),
        ("assert 'x", "0: the closing `'` is missing".to_owned()),
        ("assert 0x", "0: `0x` is not a number".to_owned()),
    ] {
        assert_eq!(error(code), message, "{code}");
    }
}

#[test]
fn invalid_operations_are_reported() {
    for (code, message) in [
        ("1 / 0", "division by zero"),
        ("1 % 0.0", "division by zero"),
        ("0 ** -1", "division by zero"),
        ("1 << -1", "negative shift count"),
        ("1 << 127", "the result is too large"),
        ("2 ** 1000", "the result is too large"),
        ("1 + 'a'", "`+` is not defined between an integer and a string"),
        ("1.5 & 1", "`&` is not defined between a float and an integer"),
        ("1 < 'a'", "an integer and a string have no order"),
        ("1 in 2", "`in` is not defined between an integer and an integer"),
        ("-'a'", "this sign is not defined for a string"),
        ("len(1)", "`len` is not defined for (an integer)"),
        ("max()", "`max` is not defined for ()"),
        ("int('x')", "`x` is not an integer"),
        ("a, b = 1, 2, 3", "expected 2 values for a, b"),
        ("'%d' % 'x'", "the conversion `%d` of a string is not supported"),
        ("'%5d' % 1", "the conversion `%5d` of an integer is not supported"),
        ("'%d' % ()", "the format has more conversions than arguments"),
        ("'x' % 1", "the format has fewer conversions than arguments"),
    ] {
        assert_eq!(error(code), format!("0: {message}"), "{code}");
    }
}

#[test]
fn large_expressions_and_values_are_refused() {
    for code in [
        "(".repeat(10_000),
        "-".repeat(10_000) + "1",
        "not ".repeat(10_000) + "1",
        format!("1{}", "+1".repeat(10_000)),
        format!("1{}", "**1".repeat(10_000)),
        format!("1{}", " if 1 else 1".repeat(10_000)),
        (0..100).map(|depth| format!("{}if 1:\n", " ".repeat(depth))).collect::<String>(),
        format!("x = 'a'\n{}", "x += x\n".repeat(100)),
        format!("x = (1,)\n{}", "x = (x, x)\n".repeat(100)),
        format!("x = (1,)\n{}", "x = (x,)\n".repeat(10_000)),
    ] {
        assert!(run(&code).is_err(), "{}", &code[..20]);
    }
}
