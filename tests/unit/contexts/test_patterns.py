"""Patterns of `.dockerignore`. The expected answers are those of the tests of Docker's own matcher."""

from __future__ import annotations

import time

import pytest

from kaigen.contexts.patterns import IgnoreRules, MalformedPattern, Pattern, read_lines


def is_ignored(text: str, path: str) -> bool:
    rules = IgnoreRules([Pattern(line) for _, line in read_lines(text)])
    matches = rules.top
    parts = path.split("/")
    for end in range(1, len(parts) + 1):
        matches = rules.of("/".join(parts[:end]), matches)
    return matches.ignored


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("**", "dir/file", True),
        ("**/", "file", True),
        ("**/**", "dir/file", True),
        ("dir/**", "dir/dir2/file", True),
        ("**/dir", "dir/file", True),
        ("**/dir2/*", "dir/dir2/file", True),
        ("**/dir2/**", "dir/dir2/dir3/file", True),
        ("**file", "dir/file", True),
        ("**file", "dir/a-file", True),
        ("**/file", "dir/a-file", False),
        ("**/file*txt", "dir/dir/file.txt", True),
        ("**/**/*.txt2", "dir/dir/file.txt", False),
        ("**/*.txt", "file.txt", True),
        ("a**/*.txt", "a/dir/dir/file.txt", True),
        ("a/*.txt", "a/dir/file.txt", False),
        ("a/*.txt**", "a/file.txt", True),
        ("a[b-d]e", "ace", True),
        ("a[b-d]e", "aae", False),
        ("a[^b-d]e", "aze", True),
        (".*", ".foo", True),
        (".*", "foo", False),
        ("abc.def", "abcZdef", False),
        ("abc?def", "abcZdef", True),
        ("abc/**", "abc", False),
        ("**/.foo", "bar.foo", False),
        ("a(b)c/def", "a(b)c/def", True),
        ("a.|)$(}+{bc", "a.|)$(}+{bc", True),
        ("a\\*b", "a*b", True),
        ("a\\*b", "ab", False),
        ("a*b*c*d*e*/f", "axbxcxdxe/xxx/f", False),
        ("a?b", "a/b", False),
        ("[\\-x]", "-", True),
        ("*.py", "module/main.py", False),
        ("/main.py", "main.py", True),
        ("./docs/", "docs/index.md", True),
        ("docs/../src", "src/main.py", True),
        ("# a comment", "# a comment", False),
        ("  *.log  \r", "run.log", True),
        ("\ufeff*.log", "run.log", True),
    ],
)
def test_pattern_matches_as_in_docker(pattern: str, path: str, expected: bool) -> None:
    assert is_ignored(pattern, path) is expected


@pytest.mark.parametrize(
    ("lines", "path", "expected"),
    [
        ("docs\n!docs/README.md", "docs/README.md", False),
        ("docs\n!docs/README.md", "docs/other.md", True),
        ("!run.py\n*.py", "run.py", True),
        ("*.py\n! run.py", "run.py", False),
        ("**\n!util/docker/web", "util/docker/web/foo", False),
        ("**\n!util/docker/web\nutil/docker/web/foo", "util/docker/web/foo", True),
        ("*\n!src\nsrc/**/*.pyc", "src/a/b.pyc", True),
        ("*\n!src\nsrc/**/*.pyc", "src/a/b.py", False),
        # BuildKit does not try a `!` of a folder that is not excluded, so it does not include what is below.
        ("a/b\n!a", "a/b", True),
    ],
)
def test_last_pattern_that_matches_decides(lines: str, path: str, expected: bool) -> None:
    assert is_ignored(lines, path) is expected


@pytest.mark.parametrize("pattern", ["[", "a[", "[]a]", "[-]", "[x-]", "[-x]", "[a-b-c]", "[^bc", "\\", "!", "!/"])
def test_pattern_that_docker_rejects_is_an_error(pattern: str) -> None:
    with pytest.raises(MalformedPattern):
        is_ignored(pattern, "a")


def test_time_is_linear_in_the_path() -> None:
    rules = IgnoreRules([Pattern("**/*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a/**/**/**/z")])
    start = time.monotonic()
    assert not rules.of("a" * 20_000 + "/yz", rules.top).ignored
    assert time.monotonic() - start < 5


def test_folder_that_cannot_have_an_included_file_is_known() -> None:
    rules = IgnoreRules([Pattern("**"), Pattern("!src/main.py")])
    assert rules.may_include_below("src")
    assert not rules.may_include_below("node_modules")
    assert IgnoreRules([Pattern("**"), Pattern("!**/*.py")]).may_include_below("node_modules")
