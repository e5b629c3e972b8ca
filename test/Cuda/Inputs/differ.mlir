// Numbers that differ by rank: of a table, a comparison and a selection.
ctran.program @differ grid ["x" = 3] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = ctran.coord "x"
  %a = ctran.window "a" input 0 : memref<12xf32>
  %b = ctran.window "b" output 0 : memref<12xf32>
  %ac = ctran.reindex %a [4 granule 3]
  %bc = ctran.reindex %b [4 granule 3]
  %from = ctran.table %x [2, 0, 1] : !ctran.coord<"x">
  %n = ctran.coord_value %x : !ctran.coord<"x">
  %last = arith.cmpi eq, %n, %c1 : index
  %to = arith.select %last, %c0, %from : index
  %s = ctran.range %ac[%from]
  %d = ctran.range %bc[%to]
  %s2 = ctran.range %ac[%to]
  %t = ctran.copy %s to %d after %entry on sm {note = "own"}
  %u = ctran.copy %s2 to %d after %t on sm {note = "again"}
  ctran.return %u : !ctran.token
}
