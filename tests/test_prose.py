"""The check of words: what it finds, and what it leaves alone."""

from pathlib import Path

import prose
import pytest

WORDS = prose.old_words("mends?->fix\nsent again->retransmitted\n")


def messages(name: str, text: str) -> list[str]:
    return [message for _, message in prose.check(name, text, WORDS)]


def test_an_old_word_is_found_in_any_text() -> None:
    assert messages("a.py", 'raise Error("how to Mend it")') == ["`Mend`: write fix"]
    assert messages("a.md", "Segments sent again.") == ["`sent again`: write retransmitted"]
    assert messages("a.rs", "// An amendment, recommended.") == []


@pytest.mark.parametrize("text", ["It is no pcap file.", "these are no settings", "a loss was no sign"])
def test_is_no_before_a_noun_is_found(text: str) -> None:
    assert len(messages("a.rs", f"/// {text}")) == 1


def test_names_are_read_as_sentences_are() -> None:
    assert len(messages("a.rs", "fn a_link_is_no_cable() {}")) == 1
    assert messages("a.rs", "fn there_is_no_cable() {}") == []


@pytest.mark.parametrize("text", ["There is no route.", "It is no longer there.", "where there are no links"])
def test_other_uses_of_no_are_left_alone(text: str) -> None:
    assert messages("a.md", text) == []


@pytest.mark.parametrize(
    "text",
    [
        "/// What a run holds.",
        "x = 1  # What is left.",
        '    """What it says."""',
        "// Ends. What follows is sent.",
    ],
)
def test_a_comment_that_begins_with_what_is_found(text: str) -> None:
    assert len(messages("a.py", text)) == 1


@pytest.mark.parametrize(
    "text",
    ["# What does latency do?", 'title = "What is new"', "/// Says what a run holds.", "# What if it fails"],
)
def test_questions_and_code_are_left_alone(text: str) -> None:
    assert messages("a.py", text) == []


def test_a_long_sentence_of_a_page_is_found_with_the_line_of_its_paragraph() -> None:
    page = "# Title\n\nShort.\n\n" + "word " * 20 + "\n" + "word " * 11 + "end.\n\nShort.\n"
    (found,) = prose.check("a.md", page, WORDS)
    assert (found[0], found[1][:9]) == (5, "32 words:")
    assert messages("a.py", page) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", 'print("Word" " word" * 1)\nfail(\n    f"Word {x}{LONG}."\n)\n'),
        ("a.rs", 'fn f() {\n    fail(\n        "Word {x}{LONG}.");\n}\n'),
        ("b.rs", 'fn f() {\n    fail(\n        "Word {x} \\\n         {LONG}.");\n}\n'),
    ],
)
def test_a_long_sentence_of_a_message_is_found_with_its_line(name: str, text: str) -> None:
    (found,) = prose.check(name, text.replace("{LONG}", " word" * 29), WORDS)
    assert (found[0], found[1][:9]) == (3, "31 words:")
    assert messages(name, text.replace("{LONG}", " word. Word" * 29)) == []


def test_texts_of_several_lines_are_not_messages() -> None:
    assert messages("a.py", f'TEXT = """\n{"word " * 40}\n"""\n') == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", 'def f():\n    """Word.\n\n    {}\n    """\n'),
        ("a.yaml", "a: 1\n# {}\n# word.\n"),
        ("a.ts", "x;\n  // {}\n  // word.\n"),
        ("a.rs", "x;\n    /// {}\n    /// word.\n"),
        ("a.c", "x;\n\t/* {}\n\t * word.\n\t */\n"),
    ],
)
def test_a_long_sentence_of_a_docstring_or_comment_is_found(name: str, text: str) -> None:
    assert len(messages(name, text.format("word " * 30 + "end"))) == 1
    assert messages(name, text.format("Word. " * 30 + "End")) == []


def test_sentences_items_cells_and_code_count_by_themselves() -> None:
    half = "Word" + " word" * 15
    page = f"{half}. {half}.\n- {half}\n- {half}\n\n| {half} | {half} |\n\n"
    page += f"```\n{half} {half}\n```\n# {half}\n{half}\n"
    assert messages("a.md", page) == []
    assert len(messages("a.md", f"- {half}\n  {half}\n")) == 1


def test_code_is_a_word_and_a_link_is_its_text() -> None:
    assert list(prose.sentences("Set `a b c` in [this file](a b c.md). See RFC 5681, e.g. section 3.")) == [
        "Set `code` in this file.",
        "See RFC 5681, e.g. section 3.",
    ]


def test_a_file_of_findings_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text("What it is.\n")
    assert prose.main([str(page)]) == 1
    assert capsys.readouterr().out == f"{page}:1: `What it is.`: begin with the noun\n"
    page.write_text("It is a page.\n")
    assert prose.main([str(page)]) == 0
