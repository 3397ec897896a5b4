"""Every diagnostic code: what it stands for, and what to do about it.

Codes are stable, because people search for them: one that is no longer used is not given to anything else.
Groups: KG01 loading, KG02 fields of a spec, KG03 names and references, KG04 dialects, KG05 checks of objects,
KG06 the output tree, KG07 `kaigen.yaml` and overrides, KG08 Git and differences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Code:
    """What a code stands for.

    Attributes:
        title: a few words, without a full stop.
        explanation: why it is a problem and how to mend it, in whole sentences.
    """

    title: str
    explanation: str


_LOADING = {
    "KG0101": Code(
        "path not found", "A path on the command line, or the target of a symbolic link, does not exist."
    ),
    "KG0102": Code(
        "cannot be read", "The file or folder exists, but the operating system refuses to read it."
    ),
    "KG0103": Code(
        "symbolic link out of the repository",
        "What is reviewed must be what is compiled. A link that leads out of the repository depends on "
        "the machine. Copy the file into the repository.",
    ),
    "KG0104": Code(
        "file too large", "A spec is a page, not a data set. Split the file, or keep data where it belongs."
    ),
    "KG0105": Code("too many documents or files", "Split the file, or name fewer folders."),
    "KG0106": Code(
        "binary file", "The file holds NUL bytes, so it is no YAML or JSON text. Save it as UTF-8."
    ),
    "KG0107": Code("not UTF-8", "A byte of the file belongs to another encoding. Save the file as UTF-8."),
    "KG0108": Code("no document", "A file that was named has only blank lines and comments."),
    "KG0109": Code(
        "no spec in the folder", "A folder that was named has no .yaml, .yml or .json file below it."
    ),
    "KG0110": Code("not valid YAML", "The text breaks a rule of YAML that has no code of its own."),
    "KG0111": Code("tab", "YAML indents with spaces only. Set the editor to write two spaces for a tab."),
    "KG0112": Code(
        "quotes",
        "A quote is not closed, or text stands behind the closing one. Inside double quotes a double "
        "quote is written \\\", inside single quotes a single quote is written ''.",
    ),
    "KG0113": Code(
        "brackets", "A bracket is not closed, not opened, or a comma between its values is missing."
    ),
    "KG0114": Code(
        "indentation",
        "Keys of one mapping start in one column, items of one list likewise. A line that starts between "
        "two columns belongs to neither.",
    ),
    "KG0115": Code(
        "colon in a value", "A colon and a space make a key, so a value that holds them must stand in quotes."
    ),
    "KG0116": Code(
        "character that means something else",
        "An unquoted value cannot start with one of % @ ` & * ! | >, or with a question mark and a space. "
        "Quote it.",
    ),
    "KG0117": Code(
        "template text",
        "Specs are data: {{ … }} and {% … %} are not expanded. Write the value, or use an environment in "
        "kaigen.yaml.",
    ),
    "KG0118": Code("missing colon or space", "A key is followed by a colon and a space: `key: value`."),
    "KG0119": Code(
        "control character",
        "The text holds a character that YAML does not allow, mostly invisible. Delete it.",
    ),
    "KG0120": Code(
        "wrong escape",
        "In double quotes a backslash starts an escape, and this is none, or stands for no character. "
        "Write the backslash twice, or use single quotes.",
    ),
    "KG0121": Code(
        "not valid JSON", "A file whose name ends in .json is read by the rules of JSON, not YAML."
    ),
    "KG0130": Code("key given twice", "Parsers disagree about which of two equal keys counts. Keep one."),
    "KG0131": Code("not a key", "A key is text. Lists, mappings and nothing at all cannot be keys."),
    "KG0132": Code(
        "tag", "Tags (!name) ask the parser for other types. kaigen reads plain data and refuses them."
    ),
    "KG0133": Code(
        "nested too deeply", "No spec needs a hundred levels of nesting; some parsers crash on them."
    ),
    "KG0134": Code(
        "aliases too large",
        "Aliases of aliases can make a small file endless. What they may add by copying is limited.",
    ),
    "KG0135": Code(
        "alias inside itself", "An alias stands inside what it stands for, so it would never end."
    ),
    "KG0136": Code(
        "unknown alias", "`*name` refers to `&name` before it in the same document, and there is none."
    ),
    "KG0137": Code(
        "anchor given twice", "Two values have the same anchor, so it is unclear which one is meant."
    ),
    "KG0138": Code(
        "merge key", "`<<` takes a mapping or a list of mappings, mostly as an alias: `<<: *name`."
    ),
    "KG0140": Code(
        "yes, no, on or off without quotes",
        "Kubernetes' parsers read these words as booleans, newer YAML parsers as text. Write true or "
        "false, or quote the word.",
    ),
    "KG0141": Code("infinite or not a number", "JSON, and so Kubernetes, has finite numbers only."),
    "KG0142": Code(
        "integer too large", "Kubernetes has integers of 64 bits. Quote longer digits: they are text."
    ),
    "KG0150": Code(
        "credential in a spec",
        "What is in Git is known to everyone who can read the repository, and stays in its history. "
        "Revoke the credential, put the new one into a Secret, and refer to that by name.",
    ),
    "KG0151": Code(
        "Secret with content",
        "The data of a Secret is encoded, not encrypted. Use External Secrets, Sealed Secrets or SOPS, or "
        "make the Secret in the cluster by hand, and refer to it by name.",
    ),
}

CODES: Mapping[str, Code] = MappingProxyType({**_LOADING})
"""All codes, in order."""
