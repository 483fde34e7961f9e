"""The commands that a document shows, and what each of them reads and writes."""
import re
import shlex

# What the first line of a block of commands begins with; other blocks (formulas, JSON, C++) are none.
BEGINNINGS = ("omniconv ", "./", "scripts/", "export ", "cat ")
# What a comment says of a command that is not run here.
LEFT_OUT = re.compile(r"\b(minutes?|GPU)\b")
OPTION = re.compile(r"--?[a-z]")
# Options that take no value.
FLAGS = {"--convolve", "--correlate", "--deterministic", "--dry-run", "--explain", "--list-kernels", "--list-models", "--measure", "--normalize", "--operations", "--print-kernel", "--quiet",
         "--rescale", "--resume", "--sampled"}


def blocks(text):
    """Number of the first line, and lines, of each fenced block without a language and of each indented one between blank lines."""
    fence, block, start, before_is_blank = None, [], 0, True
    for number, line in enumerate([*text.split("\n"), ""], 1):
        if fence is not None:
            if not line.startswith("```"):
                block.append(line)
                continue
            if fence in ("```", "```sh"):
                yield start, block
            fence, block = None, []
        elif line.startswith("    ") and (block or before_is_blank):
            start = start if block else number
            block.append(line[4:])
        else:
            if block:
                yield start, block
                block = []
            if line.startswith("```"):
                fence, start = line, number + 1
        before_is_blank = not line


def commands(text):
    """(line, command, comment): a `\\` joins lines, `  #` begins a comment."""
    for start, block in blocks(text):
        if not block or not block[0].startswith(BEGINNINGS):
            continue
        joined, first = "", 0
        for number, line in enumerate(block, start):
            first = first if joined else number
            joined += line
            if joined.endswith("\\"):
                joined = joined[:-1].rstrip() + " "
                continue
            command, _, comment = joined.partition("  #")
            if command.strip():
                yield first, command.strip(), comment.strip()
            joined = ""


def reason_to_leave_out(command, comment):
    """Why a command is not run, in the document's own words; None if it is."""
    if LEFT_OUT.search(comment):
        return comment
    if "..." in command:
        return "a summary of the options, not a command"
    return None


class Call:
    """One `omniconv` of a command: its subcommand, its words, its options by name, and where its input and output are pipes."""

    def __init__(self, words, piped_from, redirected_to):
        self.name, self.words, self.options = words[1], [], {}
        self.piped_from, self.redirected_to = piped_from, redirected_to
        rest = words[2:]
        while rest:
            word = rest.pop(0)
            if OPTION.match(word):
                has_value = bool(rest) and word not in FLAGS and not OPTION.match(rest[0])
                self.options[word] = rest.pop(0) if has_value else ""
            else:
                self.words.append(word)

    def outputs(self):
        writes = [self.options[name] for name in self.written_options() if name in self.options]
        if self.name == "filter" and len(self.words) == 2 and not {"--dry-run", "--print-kernel", "--list-kernels"} & set(self.options):
            writes.append(self.words[1])
        return [path for path in [*writes, self.redirected_to] if path and path != "-"]

    def written_options(self):
        """Those that name files which the command writes."""
        reads_indices = any(word == "bwd" for word in " ".join(self.words).split())
        written = ("-o", "--json", "--log", "--plot")
        return written if reads_indices else (*written, "--indices")

    def image(self):
        if self.name != "filter" or not self.words:
            return None
        return self.piped_from if self.words[0] == "-" else self.words[0]

    def kernel_file(self):
        kernel = self.options.get("--kernel", "")
        return kernel[1:] if kernel.startswith("@") else None

    def arrays(self):
        """Option and file of each array that is read; of `-` the file that is piped in."""
        for option, value in self.options.items():
            if option in self.written_options():
                continue
            if value == "-":
                yield option, self.piped_from
            elif value.endswith(".npy") and option != "--kernel":
                yield option, value


def calls(command):
    """Each `omniconv` of a pipeline."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|<>")
    lexer.whitespace_split = True
    words = list(lexer)
    segments, segment = [], []
    for word in [*words, "|"]:
        if word == "|":
            segments.append(segment)
            segment = []
        else:
            segment.append(word)
    for i, segment in enumerate(segments):
        redirected = segment[segment.index(">") + 1] if ">" in segment else None
        segment = segment[:segment.index(">")] if ">" in segment else segment
        if segment[:1] == ["omniconv"] and len(segment) > 1:
            before = segments[i - 1] if i else []
            yield Call(segment, before[1] if before[:1] == ["cat"] else None, redirected)
