"""A built-in schedule as a graph names it again: printed.py NCCLX-OPT OUT OP ALGORITHM FROM TO

Lowers `OP ALGORITHM` on 5 ranks, takes the printed program, and writes a graph whose collective names it."""
import re
import subprocess
import sys

opt, out, op, algorithm, before, after = sys.argv[1:]


def graph(name, words):
    return (f'ncclx.grid @g ["x" = 5]\nfunc.func @{name}(%a: tensor<{before}>) -> tensor<{after}> {{\n'
            f'  %r = ncclx.{op} over @g["x"] {words} : tensor<{before}> -> tensor<{after}>\n'
            f'  return %r : tensor<{after}>\n}}\n')


text = subprocess.run([opt, "--ncclx-bufferize", "--convert-ncclx-to-ctran"], input=graph("written", "algorithm " + algorithm),
                      capture_output=True, text=True, check=True).stdout
program = re.search(r"^  ctran\.program.*?^  }\n", text, re.M | re.S)[0]
open(out, "w").write(program + graph("f", "{ncclx.schedule = @written}"))
