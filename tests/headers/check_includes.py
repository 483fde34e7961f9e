"""Whether each source names the headers of what it uses, itself or through the project's own headers that it includes.

    check_includes.py SOURCE_DIR

Builds precompile headers, so that a compiler does not notice one that is missing. Looked for is what those headers
declare, by its usual names; what a header of another library brings along does not count.
"""

import pathlib
import re
import sys

DECLARES = {
    "algorithm": r"std::(all_of|any_of|clamp|copy|copy_n|count|count_if|equal|fill|fill_n|find|find_if|for_each|is_sorted"
                 r"|lower_bound|max|max_element|min|min_element|minmax|none_of|nth_element|remove_if|reverse|rotate|shuffle|sort"
                 r"|stable_sort|transform|unique|upper_bound)\(",
    "array": r"std::array<",
    "cmath": r"std::(abs|ceil|cos|exp|exp2|fabs|floor|fma|fmod|frexp|hypot|isfinite|isinf|isnan|ldexp|log|log2|lround|nearbyint"
             r"|nextafter|pow|remainder|round|signbit|sin|sqrt|trunc)\(",
    "cstddef": r"std::(byte|ptrdiff_t|size_t|nullptr_t)\b",
    "cstdint": r"std::u?int(8|16|32|64)_t\b",
    "cstring": r"std::(memchr|memcmp|memcpy|memmove|memset|strcmp|strlen)\(",
    "functional": r"std::function<",
    "limits": r"std::numeric_limits<",
    "memory": r"std::(enable_shared_from_this|make_shared|make_unique|shared_ptr|static_pointer_cast|unique_ptr|weak_ptr)\b",
    "optional": r"std::(optional|nullopt)\b",
    "span": r"std::span\b",
    "string": r"std::(string|to_string)\b",
    "string_view": r"std::string_view\b",
    "utility": r"std::(exchange|forward|move|pair|swap)\b",
    "vector": r"std::vector<",
    "fmt/format.h": r"\bfmt::",
}
# What these give by definition, or every library gives with them.
GIVES = {
    "array": {"cstddef", "utility"}, "algorithm": {"utility"}, "cstring": {"cstddef"}, "filesystem": {"string", "string_view"},
    "functional": {"utility"}, "map": {"utility"}, "memory": {"cstddef", "utility"}, "optional": {"utility"},
    "span": {"array", "cstddef"}, "string": {"cstddef", "string_view", "utility"}, "string_view": {"cstddef"},
    "vector": {"cstddef", "utility"}, "fmt/ranges.h": {"fmt/format.h"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)
COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)


class Sources:
    def __init__(self, root):
        self.roots = [root / name for name in ("src", "include", "cli", "tests", "bench", "examples")]
        self.known = {}

    def given(self, path):
        """The headers of others that the file brings with it."""
        if path not in self.known:
            self.known[path] = set()  # two headers that include each other
            found = set()
            for quote, name in INCLUDE.findall(path.read_text()):
                own = next((f for f in [path.parent / name, *(r / name for r in self.roots)] if f.is_file()), None)
                if own:
                    found |= self.given(own)
                else:
                    found |= {name} | GIVES.get(name, set())
            self.known[path] = found
        return self.known[path]


def main():
    root = pathlib.Path(sys.argv[1])
    sources = Sources(root)
    files = sorted(f for r in sources.roots for f in r.rglob("*") if f.suffix in (".h", ".cpp") and not f.name.endswith("-inl.h"))
    if len(files) < 100:
        sys.exit(f"{root} has {len(files)} sources: it is not the project's folder")
    missing = []
    for path in files:
        text = COMMENT_OR_TEXT.sub('""', path.read_text())
        for header, names in DECLARES.items():
            use = re.search(names, text)
            if use and header not in sources.given(path):
                missing.append(f"{path.relative_to(root)}: has {use.group(0).rstrip('(<')} without #include <{header}>")
    print("\n".join(missing) or f"{len(files)} sources include what they use")
    sys.exit(1 if missing else 0)


main()
