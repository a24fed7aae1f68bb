"""One word for one thing: what docs/glossary.md no longer uses is nowhere in the code and the pages."""

import re
import subprocess

import pytest
from project import ALL, ROOT, TEXTS, name, text

GLOSSARY = ROOT / "docs" / "glossary.md"
# Those that are gone. Words with an ordinary meaning beside the one that they had need care, and no search.
GONE = {
    "warden": r"warden",
    "room, house (of code)": r"\bapenet_room\b|\bCMake room\b|\broom of src|\bhouse\b",
    "room (for ranks)": r"\broom for (one|more|its|their) ranks?\b|\b(node|job|machine)s?\s+(has|have)\s+room\b",
    "step aside, compute aside": r"(step|comput)\w*[ _]aside|aside_test",
    "facts, habits": r"(?<!arti)facts\b|(?-i:[a-z]Facts?)\b|\bhabits?\b",
    "looks, kicks, in vain": r"\bkick(s|ed|ing)?\b|\bin[ _]vain|\bvain_|(begin|end|ipc::)_?look(ing)?\b"
    r"|[a-z]_looks?\b|\blooks?_(at|of|until|outside)|\blooks ?[=<>]",
    "hold-ups, settling, stage": r"hold[_-]?ups?_?\b(?! to)|\bsettling|[Ll]aunch/stage|on_stage",
    "left out, absent, away": r"(?<!chrome_trace\.)\bleave_out_|waits_for_absent|is_away",
    "at rest": r"\bat[ _]rest\b|comes? to rest|\brest[ _]states?\b",
    "told": r"\b(un|is_|until_)?told_|\b(is|until)_told\b|(?-i:\bTold)",
    "debt, charge later": r"\bdebt",
    "wish": r"\bwish(es)?\b",
    "is near, land": r"\bis_near\b|\bland\(|\bland_due\b",
    "takes care, may turn": r"\btakes_care\b|\bmay_turn\b",
    "lend, bring home": r"\bbring_home\b|\blend_",
    "asks nothing": r"asks_nothing|AsksNothing",
    "intake": r"\bintake",
    "known course, follow, make up": r"\b(known_?)?courses?\b|\bmake_up\b",
    "trust": r"\btrust\.[ch]pp|(?-i:\bTrust)|\bis_trusted|\btrusted_",
    "segment, context (of computation)": r"comput\w*[_ ](segment|context)s?\b|(?-i:ComputeSegment|ComputeContext)",
    "taker, hand over": r"\btakers?\b|\bhand(s|ed|ing)? (it |them )?over\b|\bhand_?over",
    "turn": r"\b(ipc::|struct )Turn\b|\(rank\)\.turn\b|block(_->|\(\)\.)turn\b|\bturns? in the simulation",
    "asleep in the host": r"\b(are|still|is)_asleep|asleep in the host",
    "circle (of waits)": r"in a circle|\bcircles\b",
}
# A text that each search finds.
FOUND = {
    "warden": "the warden",
    "room, house (of code)": "the house",
    "room (for ranks)": "the machine has room for",
    "step aside, compute aside": "computes aside",
    "facts, habits": "its habits",
    "looks, kicks, in vain": "it kicks",
    "hold-ups, settling, stage": "hold-ups",
    "left out, absent, away": "is_away",
    "at rest": "is at rest",
    "told": "told_fd",
    "debt, charge later": "a debt",
    "wish": "its wish",
    "is near, land": "is_near(rank)",
    "takes care, may turn": "may_turn",
    "lend, bring home": "lend_slot()",
    "asks nothing": "asks_nothing",
    "intake": "intake.cpp",
    "known course, follow, make up": "the course of a message",
    "trust": "trust.cpp",
    "segment, context (of computation)": "compute segments",
    "taker, hand over": "it hands them over",
    "turn": "ipc::Turn& turn",
    "asleep in the host": "still_asleep(rank)",
    "circle (of waits)": "wait for each other in a circle",
}
# They say what the words were.
ABOUT_WORDS = {"docs/glossary.md", "tests/tidy/test_words.py", "CHANGELOG.md"}


def test_the_words_of_the_glossary_that_are_gone_are_searched_for():
    rows = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", text(GLOSSARY).partition("## Not used")[2], re.MULTILINE))
    assert set(GONE) == set(rows) - {"not"}


@pytest.mark.parametrize("word", GONE)
def test_each_search_finds_its_word(word):
    assert re.search(GONE[word], FOUND[word], re.IGNORECASE)


def search(pattern: str, *options: str, paths: tuple[str, ...] = ()) -> list[str]:
    """The places where the pattern is in the project's files. By git, which takes a tenth of the time of `re`."""
    outside = [f":(exclude){path}" for path in ABOUT_WORDS]
    command = ["git", "grep", "--untracked", "--no-color", "-onIP", *options, pattern, "--", *paths, *outside]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("word", GONE)
def test_a_word_that_is_gone_is_nowhere(word):
    assert search(GONE[word], "-i") == []


def test_the_search_finds_what_is_there():
    assert search(r"\bcard_\w+(?-i:CONTRACT)?", "-i", paths=("tests/nic/*.cpp",))


GENITIVE = r"^[ \t]*(//|#|/?\*|\"\"\"|!)[ \t]*(Of|Whose|Whom)\b"


def test_no_comment_begins_with_a_genitive():
    """A comment begins with its subject, so that one reading is enough."""
    found = [f"{name(path)}: {line}" for path in TEXTS for line in text(path).splitlines() if re.match(GENITIVE, line)]
    assert found == []
    assert re.match(GENITIVE, "  // Of the last credit of a router's queue.")


TRAILING_GENITIVE = r"\S[ \t]*(//|(?<!\w)#|/\*)[ \t]*(of|whose|whom)\b"


def test_no_trailing_comment_begins_with_a_genitive():
    """What stands behind a declaration names its subject, too."""
    suffixes = ("cpp", "hpp", "c", "h", "cu", "inc", "py", "pyi")
    assert search(TRAILING_GENITIVE, paths=tuple(f"*.{suffix}" for suffix in suffixes)) == []
    assert re.search(TRAILING_GENITIVE, "int key = 0;  // of the last check, or 0")


def test_the_glossary_explains_each_term_once():
    terms = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", text(GLOSSARY).partition("## Not used")[0], re.MULTILINE)
    terms = [term for term in terms if term != "term"]
    assert len(terms) == len(set(terms))


# Files that the build writes, or that a test makes.
MADE = {"nic/description.hpp"}
COMMENT = {".cpp": r"//.*", ".hpp": r"//.*", ".c": r"//.*", ".py": r"(?<![\w\"'])#.*", ".md": r"`[^`\n]+`"}


def test_files_that_comments_and_pages_name_exist():
    known = {name(path) for path in ALL}
    ends = {ending for path in known for ending in endings(path)}
    named = [
        (path, file)
        for path in TEXTS
        if path.suffix in COMMENT and not name(path).startswith(("tests/", "CHANGELOG"))
        for comment in re.findall(COMMENT[path.suffix], text(path))
        for file in re.findall(r"(?<![\w/<.*-])(?:[\w-]+/)*[\w-]+\.(?:[ch]pp|py|inc)\b", comment)
    ]
    assert len(named) > 100
    assert [f"{name(path)}: {file}" for path, file in named if file not in ends | MADE] == []


def endings(path: str) -> list[str]:
    """The path, and what follows each of its folders."""
    parts = path.split("/")
    return ["/".join(parts[i:]) for i in range(len(parts))]
