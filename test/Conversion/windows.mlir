// Windows become cells, puts copies with a slot for each landing, signals what no landing says.
// RUN: ncclx-opt %s --convert-ncclx-to-ctran --cse | FileCheck %s
// RUN: ncclx-opt %s --convert-ncclx-to-ctran=load-store=false --cse | FileCheck %s --check-prefix=NIC
// RUN: ncclx-opt %s --convert-ncclx-to-ctran --cse --ctran-verify -o /dev/null
// RUN: ncclx-opt %s --convert-ncclx-to-ctran=load-store=false --cse --ctran-verify -o /dev/null

ncclx.grid @g ["x" = 8]

// CHECK-LABEL: ctran.program @halves
// NIC-LABEL: ctran.program @halves
func.func @halves(%a: memref<2x4xf32>) -> memref<6x4xf32> {
  // Rows 0 to 1, 2 to 3 and 4 to 5, of which peers write the first two.
  // CHECK: ctran.window "buf0" scratch peers load_store : memref<2x4xf32>
  // CHECK: ctran.window "buf1" scratch peers load_store : memref<2x4xf32>
  // CHECK: ctran.window "buf2" scratch : memref<2x4xf32>
  // CHECK: %[[READY:.+]] = ctran.slots "window.0.p0.ready" [] per_run 1
  // CHECK: %[[LANDED:.+]] = ctran.slots "window.0.p0.landed" [2] per_run 1
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<6x4xf32>>
  // One permission for both puts; the signal behind the second is its landing.
  // CHECK: ctran.wait %{{.*}} >= %{{.*}} {{.*}}note = "await ready"
  // CHECK: ctran.copy {{.*}}note = "put"
  // CHECK: ctran.copy {{.*}}note = "put"
  // CHECK-NOT: note = "signal"
  // NIC: ctran.copy %{{.*}} to %{{.*}} notify %{{.*}}on nic
  // NIC: ctran.copy %{{.*}} to %{{.*}} notify %{{.*}}on nic
  ncclx.put %a into %w[0, 0] shift 1 : memref<2x4xf32> into !ncclx.window<tensor<6x4xf32>>
  ncclx.put %a into %w[2, 0] shift 1 : memref<2x4xf32> into !ncclx.window<tensor<6x4xf32>>
  ncclx.signal %w shift 1 : !ncclx.window<tensor<6x4xf32>>
  ncclx.put %a into %w[4, 0] : memref<2x4xf32> into !ncclx.window<tensor<6x4xf32>>
  // CHECK: %[[C2:.+]] = arith.constant 2 : index
  // CHECK: %[[BOTH:.+]] = ctran.slot %[[LANDED]] from %{{.*}} size %[[C2]]
  // CHECK: ctran.wait %[[BOTH]] >= %{{.*}} {{.*}}note = "await landing"
  // NIC: note = "await landing"
  // NIC: ctran.flush
  ncclx.wait %w shift 1 count 1 : !ncclx.window<tensor<6x4xf32>>
  // What has come is what the member before has put.
  // CHECK-COUNT-2: ctran.sink
  %r = memref.alloc() : memref<6x4xf32>
  ncclx.get %w[0, 0] into(%r : memref<6x4xf32>) : !ncclx.window<tensor<6x4xf32>>
  // This one says that it has been read, and no landing does.
  // CHECK: ctran.signal {{.*}}note = "signal"
  ncclx.signal %w shift -1 : !ncclx.window<tensor<6x4xf32>>
  // CHECK: ctran.wait {{.*}}note = "await signal"
  ncclx.wait %w shift -1 count 1 : !ncclx.window<tensor<6x4xf32>>
  return %r : memref<6x4xf32>
}
