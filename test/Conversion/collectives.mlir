// Each collective by each algorithm and carrier: which ops carry it, with what order and signals.
// RUN: ncclx-opt %s --split-input-file --ncclx-bufferize --convert-ncclx-to-ctran --cse | FileCheck %s --check-prefixes=CHECK,LS
// RUN: ncclx-opt %s --split-input-file --ncclx-bufferize --convert-ncclx-to-ctran=load-store=false --cse | FileCheck %s --check-prefixes=CHECK,PUT

// By load and store a copy and a signal behind it on one serial lane; as a put the copy notifies, and a
// flush stands behind the wait. A put waits for the receiver's ready token.
// CHECK-LABEL: ctran.program @gather_direct grid ["tp" = 4]
// CHECK-SAME: #ctran.collective<"all_gather.0", "all_gather", "direct", ["tp"], 192>
// LS: ctran.window "arg0" input 0 peers load_store : memref<4x3xf32>
// PUT: ctran.window "arg0" input 0 peers put : memref<4x3xf32>
// CHECK: %[[OUT:.+]] = ctran.window "out0" output 0
// CHECK: ctran.reindex %{{.+}} along 0 ["tp" = 4 chunked granule 4] resident extent 16
// CHECK: %[[READY:.+]] = ctran.slots "all_gather.0.ready" ["tp" = 4] per_run 1
// CHECK: %[[DATA:.+]] = ctran.slots "all_gather.0.data" ["tp" = 4] per_run 1
// CHECK: scf.for
// CHECK: ctran.signal {{.*}}note = "ready"
// CHECK: scf.for
// CHECK: %[[GO:.+]] = ctran.wait {{.*}}note = "await ready"
// LS: %[[COPY:.+]] = ctran.copy %{{.+}} to %{{.+}} after %{{.+}}, %[[GO]] on ce
// LS-NEXT: ctran.signal %{{.+}} after %[[COPY]] on ce
// PUT: ctran.copy %{{.+}} to %{{.+}} notify %{{.+}} after %{{.+}}, %[[GO]] on nic
// PUT-NOT: ctran.signal {{.*}}note = "arrived"
// CHECK: ctran.slot %[[DATA]] from %{{.+}} size %{{.+}}
// CHECK: %[[ALL:.+]] = ctran.wait {{.*}}note = "await data"
// LS-NOT: ctran.flush
// PUT: %[[SEEN:.+]] = ctran.flush after %[[ALL]] on host
// CHECK: ctran.sink %{{.+}} holds "all_gather.0" after
ncclx.grid @g ["tp" = 4]
func.func @gather_direct(%a: tensor<4x3xf32>) -> tensor<16x3xf32> {
  %r = ncclx.all_gather %a dim 0 over @g["tp"] algorithm direct : tensor<4x3xf32> -> tensor<16x3xf32>
  return %r : tensor<16x3xf32>
}

// -----

// A ring talks to its neighbours alone: what it forwards is what it has just been told of.
// CHECK-LABEL: ctran.program @gather_ring
// CHECK: ctran.slots "all_gather.0.{{.*}}data" [] per_run 3
// CHECK: scf.for
// LS: ctran.copy {{.*}} on ce {note = "put"
// PUT: ctran.copy {{.*}}notify {{.*}} on nic {note = "put"
// CHECK: ctran.wait {{.*}}note = "await data"
// PUT: ctran.flush
// CHECK: scf.yield
ncclx.grid @g ["tp" = 4]
func.func @gather_ring(%a: tensor<4x3xf32>) -> tensor<16x3xf32> {
  %r = ncclx.all_gather %a dim 0 over @g["tp"] algorithm ring : tensor<4x3xf32> -> tensor<16x3xf32>
  return %r : tensor<16x3xf32>
}

// -----

// Direct gathers all pieces and adds them once, in rank order, in the accumulation type.
// CHECK-LABEL: ctran.program @scatter_direct
// CHECK: ctran.window "reduce_scatter.0.{{.*}}" scratch
// CHECK: ctran.reduce max accumulate f32
// CHECK-NOT: ctran.reduce
// CHECK: ctran.sink %{{.+}} holds "reduce_scatter.0"{{.*}} summed ["tp"]
ncclx.grid @g ["tp" = 4]
func.func @scatter_direct(%a: tensor<5xbf16>) -> tensor<2xbf16> {
  %r = ncclx.reduce_scatter %a dim 0 max accumulate f32 order rank over @g["tp"] algorithm direct : tensor<5xbf16> -> tensor<2xbf16>
  return %r : tensor<2xbf16>
}

// -----

// A ring adds its own part to what comes and passes it on, through two slots and a credit.
// CHECK-LABEL: ctran.program @reduce_ring
// CHECK: ctran.window "all_reduce.0.parts" scratch
// CHECK: ctran.slots "all_reduce.0.rs.data" [] per_run 3
// CHECK: ctran.slots "all_reduce.0.rs.credit" [] per_run 3
// CHECK: scf.for
// CHECK: ctran.wait {{.*}}note = "await part"
// PUT-NEXT: ctran.flush
// CHECK: %[[ADD:.+]] = ctran.reduce sum accumulate f32
// CHECK: %[[CREDIT:.+]] = ctran.wait {{.*}}note = "await credit"
// CHECK: ctran.copy %{{.+}} to %{{.+}} after %[[ADD]], %[[CREDIT]] on
// CHECK: ctran.signal {{.*}}note = "credit"
// CHECK: ctran.slots "all_reduce.0.ag.data" [] per_run 3
ncclx.grid @g ["tp" = 4]
func.func @reduce_ring(%a: tensor<13x3xf32>) -> tensor<13x3xf32> {
  %r = ncclx.all_reduce %a sum accumulate f32 order any over @g["tp"] algorithm ring : tensor<13x3xf32> -> tensor<13x3xf32>
  return %r : tensor<13x3xf32>
}

// -----

// The group is one axis of two: peers differ in that one alone.
// CHECK-LABEL: ctran.program @one_axis grid ["dp" = 2, "tp" = 3]
// CHECK: %[[TP:.+]] = ctran.shift %{{.+}} by %{{.+}} : <"tp">
// CHECK: %[[DP:.+]] = ctran.coord "dp"
// CHECK: ctran.peer_view %{{.+}} at (%[[DP]] : "dp", %[[TP]] : "tp")
// CHECK-NOT: ctran.shift {{.*}}<"dp">
// CHECK-NOT: ctran.coord_value
// CHECK: ctran.return
ncclx.grid @g ["dp" = 2, "tp" = 3]
func.func @one_axis(%a: tensor<6xf32>) -> tensor<6xf32> {
  %r = ncclx.all_to_all %a split 0 concat 0 over @g["tp"] : tensor<6xf32> -> tensor<6xf32>
  return %r : tensor<6xf32>
}

// -----

// Pairs name ranks, which no coordinate does: the program branches on its own number, and members that
// receive nothing fill their result with zeros.
// CHECK-LABEL: ctran.program @pairs
// CHECK: ctran.coord_value
// CHECK: scf.if
// CHECK: ctran.compute @pairs.k0.zero
// CHECK-LABEL: func.func private @pairs.k0.zero
// CHECK: linalg.fill
ncclx.grid @g ["pp" = 3]
func.func @pairs(%a: tensor<4xf32>) -> tensor<4xf32> {
  %r = ncclx.permute %a pairs [0 -> 2] over @g["pp"] : tensor<4xf32> -> tensor<4xf32>
  return %r : tensor<4xf32>
}
