"""Checks the words of pages, comments and messages.

    scripts/prose.py [FILE...]

Without files it reads all text that git tracks. It prints each finding with its place, and exits with 1 if
there is one. The rules:

- no word of `old-words.txt`;
- no sentence that begins with "What" and is not a question: begin with the noun;
- no "is no" before a noun: write "is not a";
- in pages, in docstrings, in comments on lines of their own, and in the strings of Python and Rust without
  their tests, no sentence of more than 30 words.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

MAX_WORDS = 30
ROOT = Path(__file__).resolve().parent.parent
PAGES = (".md",)
SOURCES = (".py", ".rs", ".c", ".h", ".ts", ".tsx", ".yaml", ".yml", ".toml", ".html", ".jinja")
# The old words themselves.
LEFT_OUT = ("scripts/prose.py", "tests/test_prose.py", "web/package-lock.json")

# "There is no route" and "is no longer" are right; "it is no route" is not.
_NOT_A_NOUN = (
    r"longer|more|less|fewer|better|worse|other|different|greater|larger|smaller|higher|lower|slower|faster|"
    r"sooner|later|one|matter|such"
)
_IS_NO = re.compile(
    r"(?<!there[ _])(?<!which )(?<!here )(?<![^\W_])(?:is|are|was|were)[ _]no[ _]"
    rf"(?!(?:{_NOT_A_NOUN})(?![a-z]))[a-z]+",
    re.IGNORECASE,
)
_WHAT = re.compile(r"(?:^|(?<=[.:!?] ))What (?!(?:if|about|for)\b)[^.?!]*(?:[.!:]|$)")
_COMMENT = re.compile(r"^\s*(?://[/!]?|#+|/?\*+|\"\"\")\s?(.*?)(?:\*/|\"\"\")?\s*$|^.*?\s(?://|#|/\*)\s(.*)$")
# Comments on lines of their own, by the ends of file names.
_MARKS = {
    (".yaml", ".yml"): re.compile(r"\s*#(.*)"),
    (".ts", ".tsx", ".rs"): re.compile(r"\s*//[/!]?(.*)"),
    (".c", ".h"): re.compile(r"\s*(?:/\*+|\*(?=[\s/])|//)(.*?)(?:\*/)?\s*$"),
}
_SENTENCE_END = re.compile(r"(?<=[.?!])[\"”)*_]*\s+(?=[\"“(*_`\[]*[A-Z0-9`])")
_RUST_STRING = re.compile(r'"((?:[^"\\]|\\.|\\\n)*)"', re.DOTALL)
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|al|cf)\.$")
_WORD = re.compile(r"[^\W_]\S*")
_ITEM = re.compile(r"^(?:[-*>]|#+|\d+\.) ")


@dataclass(frozen=True)
class Paragraph:
    """A paragraph, list item, heading or table cell, and the line where it begins."""

    line: int
    text: str


def main(names: list[str]) -> int:
    """Check these files, or all that git tracks; the exit code."""
    words = old_words((ROOT / "scripts/old-words.txt").read_text())
    code = 0
    for path in map(Path, names) if names else tracked():
        shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        name = "test" if "tests" in path.parts else path.name
        for line, message in check(name, path.read_text(errors="replace"), words):
            sys.stdout.write(f"{shown}:{line}: {message}\n")
            code = 1
    return code


def tracked() -> Iterator[Path]:
    """The files with text that people read."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, text=True, capture_output=True, check=True)
    for name in listed.stdout.splitlines():
        if name.endswith(PAGES + SOURCES) and name not in LEFT_OUT and (ROOT / name).is_file():
            yield ROOT / name


def old_words(text: str) -> list[tuple[re.Pattern[str], str]]:
    """Each line such as `mend->fix` as a pattern, and the word to write."""
    pairs = (line.split("->", 1) for line in text.splitlines() if "->" in line)
    # In names an underscore stands for a space, and ends a word.
    return [
        (re.compile(rf"(?<![^\W_])(?:{old.replace(' ', '[ _]')})(?![^\W_])", re.IGNORECASE), new)
        for old, new in pairs
    ]


def check(name: str, text: str, words: Iterable[tuple[re.Pattern[str], str]]) -> Iterator[tuple[int, str]]:
    """The findings in a file's text: line and message."""
    is_page = name.endswith(PAGES)
    for number, line in enumerate(text.splitlines(), 1):
        for old, new in words:
            if found := old.search(line):
                yield number, f"`{found[0]}`: write {new}"
        if found := _IS_NO.search(line):
            yield number, f"`{found[0]}`: write `is not a`"
        if found := _WHAT.search(line.strip() if is_page else comment(line)):
            yield number, f"`{found[0][:40]}`: begin with the noun"
    for paragraph in paragraphs(text) if is_page else (*messages(name, text), *comments(name, text)):
        for sentence in sentences(paragraph.text):
            if (count := len(_WORD.findall(sentence))) > MAX_WORDS:
                yield paragraph.line, f"{count} words: {sentence}"


def messages(name: str, text: str) -> Iterator[Paragraph]:
    """The strings of a line in source text, such as error messages; a value put into one counts as a word."""
    if name.endswith(".py"):
        try:
            tree = ast.parse(text)
        except SyntaxError:
            return
        parts = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        alone = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                constants = (part.value if isinstance(part, ast.Constant) else "0" for part in node.values)
                found = "".join(map(str, constants))
            elif isinstance(node, ast.Constant) and node not in parts | alone:
                found = str(node.value)
            else:
                continue
            if "\n" not in found:
                yield Paragraph(node.lineno, found)
    elif name.endswith(".rs"):
        for string in _RUST_STRING.finditer(text.split("#[cfg(test)]")[0]):
            found = re.sub(r"\\\n\s*", "", string[1])
            if "\n" not in found and "\\n" not in found:
                yield Paragraph(text.count("\n", 0, string.start()) + 1, found)


def comments(name: str, text: str) -> Iterator[Paragraph]:
    """The paragraphs of Python's docstrings, and elsewhere those of comments on lines of their own."""
    if name.endswith(".py"):
        try:
            tree = ast.parse(text)
        except SyntaxError:
            return
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                start = getattr(node, "lineno", 1)
                for paragraph in paragraphs(ast.get_docstring(node) or ""):
                    yield Paragraph(start + paragraph.line, paragraph.text)
    else:
        marks = (marks for ends, marks in _MARKS.items() if name.endswith(ends))
        if mark := next(marks, None):
            found = (mark.match(line) for line in text.splitlines())
            yield from paragraphs("\n".join(one[1].strip() if one else "" for one in found))


def comment(line: str) -> str:
    """The comment in a line of source text, or nothing."""
    found = _COMMENT.match(line)
    return (found[1] or found[2] or "").strip() if found else ""


def paragraphs(page: str) -> Iterator[Paragraph]:
    """The paragraphs of a Markdown page, without code."""
    begun: list[str] = []
    start, is_code = 1, False
    for number, line in enumerate([*page.splitlines(), ""], 1):
        text = line.strip()
        is_fence = text.startswith("```")
        is_code ^= is_fence
        is_apart = not text or is_code or is_fence or text.startswith(("|", "<", "---"))
        if begun and (is_apart or _ITEM.match(text) or begun[0].startswith("#")):
            yield Paragraph(start, _ITEM.sub("", " ".join(begun), count=1))
            begun = []
        if text.startswith("|") and not is_code:
            yield from (Paragraph(number, cell.strip()) for cell in re.split(r"(?<!\\)\|", text.strip("|")))
        elif not is_apart:
            start = start if begun else number
            begun.append(text)


def sentences(text: str) -> Iterator[str]:
    """The sentences of a paragraph. Code counts as a word; of a link, its text."""
    text = re.sub(r"`[^`]*`", "`code`", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    part = ""
    for piece in _SENTENCE_END.split(text):
        part = f"{part} {piece}".strip()
        if not _ABBREVIATION.search(part):
            yield part
            part = ""
    if part:
        yield part


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
