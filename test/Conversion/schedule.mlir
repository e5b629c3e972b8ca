// A collective that names a schedule of the user's: the program's body stands where the collective
// stood, on the group's axes and the graph's buffers, and what is proved is the collective.
// RUN: ncclx-opt %s --ncclx-bufferize --convert-ncclx-to-ctran --cse --ctran-verify=undecided=error | FileCheck %s

ncclx.grid @g ["dp" = 2, "tp" = 4]

// The schedule itself stays as it is.
// CHECK: ctran.program @ring grid ["x" = 4] collectives
ctran.program @ring grid ["x" = 4] collectives [#ctran.collective<"all_gather", "all_gather", "own ring", ["x"], 64>] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %me = ctran.coord "x"
  %cm1 = arith.constant -1 : index
  %left = ctran.shift %me by %cm1 : !ctran.coord<"x">
  %right = ctran.shift %me by %c1 : !ctran.coord<"x">
  %in = ctran.window "in" input 0 : memref<6xf32>
  %whole = ctran.window "out" output 0 peers load_store : memref<24xf32>
  %out = ctran.reindex %whole ["x" = 4]
  %free = ctran.slots "free" [] per_run 1
  %came = ctran.slots "came" [] per_run 3
  %outRight = ctran.peer_view %out at (%right : "x") : !ctran.window
  %cameRight = ctran.peer_view %came at (%right : "x") : !ctran.slots
  %freeLeft = ctran.peer_view %free at (%left : "x") : !ctran.slots
  %mine = ctran.range %in
  %given = ctran.source %mine holds "all_gather"[%me : "x"] after %entry on host
  %fl = ctran.slot %freeLeft
  %told = ctran.signal %fl after %entry on sm {of = "all_gather", note = "you may write"}
  %place = ctran.range %out[%me : "x"]
  %kept = ctran.copy %mine to %place after %given, %entry on sm {of = "all_gather", note = "keep own"}
  %f = ctran.slot %free
  %may = ctran.wait %f >= %c1 on sm {of = "all_gather", note = "may I write"}
  %c = ctran.slot %came
  %cr = ctran.slot %cameRight
  %all = scf.for %s = %c0 to %c3 step %c1 iter_args(%have = %kept) -> (!ctran.token) {
    %back = arith.subi %c0, %s : index
    %whose = ctran.shift %me by %back : !ctran.coord<"x">
    %piece = ctran.range %out[%whose : "x"]
    %there = ctran.range %outRight[%whose : "x"]
    %sent = ctran.copy %piece to %there after %have, %may on sm {of = "all_gather", note = "pass on"}
    %said = ctran.signal %cr after %sent on sm {of = "all_gather", note = "it came"}
    %k = arith.addi %s, %c1 : index
    %got = ctran.wait %c >= %k after %said on sm {of = "all_gather", note = "wait for the next"}
    scf.yield %got : !ctran.token
  }
  %box = ctran.range %out
  %end = ctran.sink %box holds "all_gather" after %all, %told on host
  ctran.return %end : !ctran.token
}

// CHECK: ctran.program @f grid ["dp" = 2, "tp" = 4] collectives
// CHECK-SAME: #ctran.collective<"all_gather.0", "all_gather", "ring", ["tp"], 96>
// CHECK-SAME: #ctran.collective<"all_gather.1", "all_gather", "ring", ["tp"], 96>
// The source and sink are the collective's; those of the schedule are gone.
// CHECK: %[[TP:.+]] = ctran.coord "tp"
// CHECK: ctran.source %{{.+}} holds "all_gather.0"[%[[TP]] : "tp"]
// CHECK: ctran.slots "all_gather.0.free" [] per_run 1
// CHECK: ctran.slots "all_gather.0.came" [] per_run 3
// CHECK: %[[DP:.+]] = ctran.coord "dp"
// CHECK: ctran.peer_view %{{.+}} at (%[[DP]] : "dp", %{{.+}} : "tp") : !ctran.window
// CHECK-NOT: holds "all_gather"
// CHECK: ctran.copy {{.*}} on sm {note = "pass on", of = "all_gather.0"}
// CHECK: ctran.sink %{{.+}} holds "all_gather.0" after
// In flight together, they take other lanes.
// CHECK: ctran.copy {{.*}} on sm[%{{.+}}] {note = "pass on", of = "all_gather.1"}
func.func @f(%a: tensor<2x3xf32>) -> (tensor<8x3xf32>, tensor<8x3xf32>) {
  %r = ncclx.all_gather %a dim 0 over @g["tp"] {ncclx.schedule = @ring} : tensor<2x3xf32> -> tensor<8x3xf32>
  %f = ncclx.start {
    %s = ncclx.all_gather %a dim 0 over @g["tp"] {ncclx.schedule = @ring} : tensor<2x3xf32> -> tensor<8x3xf32>
    ncclx.yield %s : tensor<8x3xf32>
  } : !ncclx.future<tensor<8x3xf32>>
  %s = ncclx.await %f : !ncclx.future<tensor<8x3xf32>> -> tensor<8x3xf32>
  return %r, %s : tensor<8x3xf32>, tensor<8x3xf32>
}
