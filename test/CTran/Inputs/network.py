"""Mutants of a program that goes through a switch, and the first word of what the prover says of each."""
import re, subprocess, sys

text = open(sys.argv[1]).read()
mutants = [
    ("nobody waits until all have come", r"%come = ctran.wait %frees >= %c1", "%come = ctran.wait %frees >= %c0"),
    ("the copies are not waited for", r"after %g, %r, %t on ce", "after %g, %r, %entry on host"),
    ("the sum is asked for before all have come", r"(%theirs into %keep after) %come", r"\1 %r"),
    ("the result is taken before all have sent", r"(%wr holds \"g\" after) %done", r"\1 %sent"),
    ("the multicast is not told of", r"(?s)%sent\)( -> .*?after) %sent, ", r"%kept)\1 "),
    ("the sum is not told of", r"after %sent, %kept, %spreads, %t on ce", "after %sent, %kept, %t on ce"),
    ("who reads the inputs does not say when", r"after %sent, %kept, %spreads, %t on ce",
     "after %sent, %spreads, %t on ce"),
    ("one generation of what is one-shot", r"generations 2 ", ""),
    ("all write one place", r"ctran.range %wm\[%x : \"x\"\]", "ctran.range %wm[%c0]"),
    ("another's piece is asked for", r"ctran.range %im\[%x : \"x\"\]", "ctran.range %im[%px : \"x\"]"),
    ("another's piece is sent", r"ctran.range %wm\[%x : \"x\"\]", "ctran.range %wm[%px : \"x\"]"),
    ("by max instead of sum", r"\"r\" summed \[\"x\"\] by sum after %oned", "\"r\" summed [\"x\"] by max after %oned"),
    ("one member less", r"%copies into %ones", "%copy into %ones"),
]
for name, old, new in mutants:
    mutant, count = re.subn(old, new, text)
    assert count == 1, name
    mutant = mutant.replace('%x = ctran.coord "x"\n',
                            '%x = ctran.coord "x"\n  %px = ctran.shift %x by %c1 : !ctran.coord<"x">\n')
    said = subprocess.run(["ncclx-opt", "--ctran-verify", "-o", "/dev/null"], input=mutant, text=True,
                          capture_output=True)
    found = re.search(r"is refused: ([^:\n]*)", said.stderr)
    print(f"{name}: {found.group(1) if found else said.stderr or 'proved'}")
