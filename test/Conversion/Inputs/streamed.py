"""Mutants of rounds that stream, and the first word of what the prover says of each."""
import re, subprocess, sys

text = open(sys.argv[1]).read()


def early(note, number=1):
    """The wait of that note, the number-th of them in the text, waits for nothing."""
    waits = list(re.finditer(r'>= (%\w+)( after [^{]*)?( on [^{]*)\{note = "' + note + '"', text))
    at = waits[number - 1]
    return text[:at.start(1)] + "%zero" + text[at.end(1):]


def elsewhere(note):
    """The op of that note names, in its first operand or slot, chunk 0 instead of its own."""
    op = re.search(r"ctran\.(copy|signal) (%\w+) [^{]*\{note = \"" + note + '"', text)
    box = list(re.finditer(re.escape(op.group(2)) + r" = ctran\.(range|slot) %\w+\[(%\w+)",
                           text[:op.start()]))[-1]
    return text[:box.start(2)] + "%zero" + text[box.end(2):]


mutants = [
    ("a sum is sent before it is made", early("await sum", 1)),
    ("a sum goes home before it is made", early("await sum", 2)),
    ("parts are added before they have come", early("await parts")),
    ("a chunk is sent on before it is there", early("await chunk")),
    ("blocks go home before they have come", early("await blocks")),
    ("parts of another chunk are put", elsewhere("put parts")),
    ("blocks of another chunk are put", elsewhere("put blocks")),
    ("another chunk is told to be summed", elsewhere("summed")),
    ("another chunk is told to be there", elsewhere("there")),
]
for name, mutant in mutants:
    mutant = re.sub(r"(?m)^(\s*)(%\S+ = ctran\.window)", r"\1%zero = arith.constant 0 : index\n\1\2", mutant, count=1)
    said = subprocess.run(["ncclx-opt", "--ctran-verify", "-o", "/dev/null"], input=mutant, text=True,
                          capture_output=True)
    found = re.search(r"is refused: ([^:\n]*)", said.stderr)
    print(f"{name}: {found.group(1) if found else said.stderr or 'proved'}")
