// RUN: ncclx-opt %s --ncclx-verify-legality --split-input-file --verify-diagnostics

ncclx.grid @g ["tp" = 4]

// The condition is computed, and loaded in the end.
func.func @legality_l3_chain(%a: tensor<4xf32>, %m: memref<4xindex>, %n: index {ncclx.uniform}) {
  // expected-note @+1 {{which is a result of this 'memref.load', and may differ between ranks}}
  %0 = memref.load %m[%n] : memref<4xindex>
  // expected-note @+1 {{which is a result of this 'arith.addi'}}
  %1 = arith.addi %0, %n : index
  // expected-note @+1 {{which is a result of this 'arith.cmpi'}}
  %2 = arith.cmpi slt, %1, %n : index
  // expected-note @+1 {{this 'scf.if' depends on a value}}
  scf.if %2 {
    // expected-error @+1 {{is under control flow that may differ between ranks}}
    %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  }
  return
}

// -----

ncclx.grid @g ["tp" = 4]

// expected-note @+1 {{which is argument #1, not marked {ncclx.uniform}}}
func.func @legality_l3_bound(%a: tensor<4xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-note @+1 {{this 'scf.for' depends on a value}}
  scf.for %i = %c0 to %n step %c1 {
    %f = ncclx.start {
      // expected-error @+1 {{is under control flow that may differ between ranks}}
      %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
      ncclx.yield %r : tensor<4xf32>
    } : !ncclx.future<tensor<4xf32>>
    %v = ncclx.await %f : !ncclx.future<tensor<4xf32>> -> tensor<4xf32>
  }
  return
}

// -----

ncclx.grid @g ["tp" = 4]

// Uniform at first, but not when it comes round: the number of rounds of the inner loop differs.
// expected-note @+1 {{which is argument #1, not marked {ncclx.uniform}}}
func.func @legality_l3_carried(%a: tensor<4xf32>, %d: index, %n: index {ncclx.uniform}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-note @+1 {{which is argument #1 of this 'scf.for'}}
  %x = scf.for %i = %c0 to %n step %c1 iter_args(%u = %c1) -> index {
    // expected-note @+1 {{this 'scf.for' depends on a value}}
    scf.for %j = %c0 to %u step %c1 {
      // expected-error @+1 {{is under control flow that may differ between ranks}}
      %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
    }
    // expected-note @+1 {{which is a result of this 'arith.addi'}}
    %w = arith.addi %u, %d : index
    scf.yield %w : index
  }
  return
}

// -----

ncclx.grid @g ["tp" = 4]

// Almost: the same with an argument that is marked; and all kinds of control flow.
func.func @uniform(%a: tensor<4xf32>, %d: index {ncclx.uniform}, %n: index {ncclx.uniform}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = scf.for %i = %c0 to %n step %c1 iter_args(%u = %c1) -> index {
    scf.for %j = %c0 to %u step %c1 {
      %p = arith.cmpi slt, %j, %i : index
      scf.if %p {
        %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
      }
    }
    %w = arith.addi %u, %d : index
    scf.yield %w : index
  }
  %y = scf.while (%k = %x) : (index) -> index {
    %p = arith.cmpi sgt, %k, %c0 : index
    scf.condition(%p) %k : index
  } do {
  ^bb0(%k: index):
    %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
    %w = arith.subi %k, %c1 : index
    scf.yield %w : index
  }
  scf.index_switch %y
  case 0 {
    %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
    scf.yield
  }
  default {
  }
  scf.execute_region {
    %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
    scf.yield
  }
  return
}

// Almost: a condition that differs is fine where nothing communicates, an await included.
func.func @not_uniform_without_communication(%a: tensor<4xf32>, %p: i1) -> tensor<4xf32> {
  %f = ncclx.start {
    %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
    ncclx.yield %r : tensor<4xf32>
  } : !ncclx.future<tensor<4xf32>>
  %v = scf.if %p -> tensor<4xf32> {
    %x = ncclx.await %f : !ncclx.future<tensor<4xf32>> -> tensor<4xf32>
    scf.yield %x : tensor<4xf32>
  } else {
    %x = ncclx.await %f : !ncclx.future<tensor<4xf32>> -> tensor<4xf32>
    %y = arith.addf %x, %x : tensor<4xf32>
    scf.yield %y : tensor<4xf32>
  }
  return %v : tensor<4xf32>
}

// -----

ncclx.grid @g ["tp" = 4]

func.func @legality_l3_while(%a: tensor<4xf32>, %m: memref<i1>) {
  // expected-note @+1 {{this 'scf.while' depends on a value}}
  scf.while : () -> () {
    // expected-note @+1 {{which is a result of this 'memref.load', and may differ between ranks}}
    %p = memref.load %m[] : memref<i1>
    scf.condition(%p)
  } do {
    // expected-error @+1 {{is under control flow that may differ between ranks}}
    %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
    scf.yield
  }
  return
}

// -----

ncclx.grid @g ["tp" = 4]

// The result of a branch under a condition that differs.
// expected-note @+1 {{which is argument #1, not marked {ncclx.uniform}}}
func.func @legality_l3_result_of_branch(%a: tensor<4xf32>, %p: i1) {
  %true = arith.constant true
  %false = arith.constant false
  // expected-note @+1 {{which is a result of this 'scf.if'}}
  %q = scf.if %p -> i1 {
    scf.yield %true : i1
  } else {
    scf.yield %false : i1
  }
  // expected-note @+1 {{this 'scf.if' depends on a value}}
  scf.if %q {
    // expected-error @+1 {{is under control flow that may differ between ranks}}
    %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  }
  return
}

// -----

ncclx.grid @g ["tp" = 4]

// What is computed from a tensor that differs, by linalg.
// expected-note @+1 {{which is argument #0, not marked {ncclx.uniform}}}
func.func @legality_l3_linalg(%a: tensor<4xf32>) {
  %e = arith.constant dense<0.0> : tensor<f32>
  %zero = arith.constant 0.0 : f32
  // expected-note @+1 {{which is a result of this 'linalg.reduce'}}
  %s = linalg.reduce ins(%a : tensor<4xf32>) outs(%e : tensor<f32>) dimensions = [0]
    (%x: f32, %y: f32) {
      %z = arith.addf %x, %y : f32
      linalg.yield %z : f32
    }
  // expected-note @+1 {{which is a result of this 'tensor.extract'}}
  %v = tensor.extract %s[] : tensor<f32>
  // expected-note @+1 {{which is a result of this 'arith.cmpf'}}
  %p = arith.cmpf olt, %v, %zero : f32
  // expected-note @+1 {{this 'scf.if' depends on a value}}
  scf.if %p {
    // expected-error @+1 {{is under control flow that may differ between ranks}}
    %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  }
  return
}

// -----

ncclx.grid @g ["tp" = 4]

func.func @legality_l1_blocks(%a: tensor<4xf32>, %p: i1 {ncclx.uniform}) {
  cf.cond_br %p, ^bb1, ^bb2
^bb1:
  // expected-error @+1 {{communicates in unstructured control flow, which may differ between ranks}}
  %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  cf.br ^bb2
^bb2:
  return
}

// -----

ncclx.grid @g ["tp" = 4]

func.func @legality_l2_parallel(%a: tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-note @+1 {{here}}
  scf.parallel (%i) = (%c0) to (%c1) step (%c1) {
    // expected-error @+1 {{communicates inside 'scf.parallel', which gives its rounds no order}}
    %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  }
  return
}

// -----

ncclx.grid @g ["tp" = 4]

func.func private @inner(%a: tensor<4xf32>) {
  %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  return
}
func.func private @outer(%a: tensor<4xf32>) {
  func.call @inner(%a) : (tensor<4xf32>) -> ()
  return
}
func.func private @quiet(%a: tensor<4xf32>) {
  return
}
// expected-note @+1 {{which is argument #1, not marked {ncclx.uniform}}}
func.func @legality_l4_call(%a: tensor<4xf32>, %p: i1) {
  // expected-note @+1 {{this 'scf.if' depends on a value}}
  scf.if %p {
    func.call @quiet(%a) : (tensor<4xf32>) -> ()
    // expected-error @+1 {{is under control flow that may differ between ranks}}
    func.call @outer(%a) : (tensor<4xf32>) -> ()
  }
  return
}

// -----

func.func private @callee(%n: index {ncclx.uniform}) {
  return
}
// expected-note @+1 {{which is argument #0, not marked {ncclx.uniform}}}
func.func @legality_l5_argument(%n: index, %u: index {ncclx.uniform}) {
  func.call @callee(%u) : (index) -> ()
  // expected-error @+1 {{passes as argument #0, which @callee marks {ncclx.uniform}, a value that may differ between ranks}}
  func.call @callee(%n) : (index) -> ()
  return
}

// -----

func.func private @callee(%n: index {ncclx.uniform}) {
  return
}
// An induction variable differs where a bound does.
// expected-note @+1 {{which is argument #0, not marked {ncclx.uniform}}}
func.func @legality_l5_induction_variable(%n: index, %u: index {ncclx.uniform}) {
  %c0 = arith.constant 0 : index
  scf.for %i = %c0 to %u step %u {
    func.call @callee(%i) : (index) -> ()
  }
  // expected-note @+1 {{which is argument #0 of this 'scf.for'}}
  scf.for %i = %c0 to %u step %n {
    // expected-error @+1 {{passes as argument #0, which @callee marks {ncclx.uniform}, a value that may differ between ranks}}
    func.call @callee(%i) : (index) -> ()
  }
  return
}

// -----

ncclx.grid @g ["tp" = 4]

// expected-note @+1 {{this one}}
func.func private @kernel(%a: tensor<4xf32>) -> tensor<4xf32> {
  %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @legality_l6_kernel(%a: tensor<4xf32>) {
  // expected-error @+1 {{runs a kernel that communicates}}
  %r = ncclx.call @kernel(%a) {flops = 1, bytes = 1, sms = 1} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// expected-note @+1 {{this one}}
func.func private @kernel(tensor<4xf32>) -> tensor<4xf32>
func.func @legality_l6_no_body(%a: tensor<4xf32>) {
  // expected-error @+1 {{runs a kernel without a body: @kernel is only declared}}
  %0 = ncclx.call @kernel(%a) {flops = 1, bytes = 1, sms = 1} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["x" = 4]
func.func @legality_l10_branch(%c: i1 {ncclx.uniform}) {
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<4xf32>>
  %v = ncclx.window over @g["x"] : !ncclx.window<tensor<4xf32>>
  // expected-error @+1 {{hands on a window, which only put, get, signal and wait may name, in the function that makes it}}
  %u = arith.select %c, %w, %v : !ncclx.window<tensor<4xf32>>
  return
}

// -----

ncclx.grid @g ["x" = 4]
// expected-error @+1 {{hands on a window}}
func.func @legality_l10_argument(%w: !ncclx.window<tensor<4xf32>>) {
  ncclx.signal %w shift 1 : !ncclx.window<tensor<4xf32>>
  return
}

// -----

ncclx.grid @g ["x" = 4]
// expected-note @+1 {{which is argument #1, not marked {ncclx.uniform}}}
func.func @legality_l3_put(%a: tensor<4xf32>, %c: i1) {
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<4xf32>>
  // expected-note @+1 {{this 'scf.if' depends on a value}}
  scf.if %c {
    // expected-error @+1 {{is under control flow that may differ between ranks}}
    ncclx.put %a into %w[0] shift 1 : tensor<4xf32> into !ncclx.window<tensor<4xf32>>
  }
  return
}

// -----

ncclx.grid @g ["dp" = 2, "tp" = 4]

// What all ranks get the same of decides, awaited too; and what is assumed.
func.func @communicated(%a: tensor<4xf32>, %p: i1) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %s = ncclx.all_reduce %a sum accumulate f32 order any over @g["tp", "dp"] : tensor<4xf32> -> tensor<4xf32>
  %x = tensor.extract %s[%c0] : tensor<4xf32>
  %go = arith.cmpf ogt, %x, %zero : f32
  scf.if %go {
    %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  }
  %f = ncclx.start {
    %all = ncclx.all_gather %a dim 0 over @g["dp", "tp"] : tensor<4xf32> -> tensor<32xf32>
    ncclx.yield %all : tensor<32xf32>
  } : !ncclx.future<tensor<32xf32>>
  %v = ncclx.await %f : !ncclx.future<tensor<32xf32>> -> tensor<32xf32>
  %y = tensor.extract %v[%c0] : tensor<32xf32>
  %b = ncclx.broadcast %a root [1] over @g groups [[3, 0, 1, 2, 4, 5, 6, 7]] : tensor<4xf32> -> tensor<4xf32>
  %z = tensor.extract %b[%c0] : tensor<4xf32>
  %w = scf.while (%k = %y) : (f32) -> f32 {
    %p0 = arith.cmpf ogt, %k, %z : f32
    scf.condition(%p0) %k : f32
  } do {
  ^bb0(%k: f32):
    ncclx.barrier over @g["tp"]
    %n = arith.subf %k, %x : f32
    scf.yield %n : f32
  }
  %u = ncclx.assume_uniform %p : i1
  scf.if %u {
    ncclx.barrier over @g["tp"]
  }
  return
}

// -----

ncclx.grid @g ["tp" = 4]

// What a buffer holds before it is written says nothing; and almost: here it is read.
func.func @legality_l3_destination(%a: tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %s = ncclx.all_reduce %a sum accumulate f32 order any over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  // expected-note @+1 {{which is a result of this 'tensor.empty', and may differ between ranks}}
  %e = tensor.empty() : tensor<4xf32>
  %d = linalg.sub ins(%s, %s : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %x = tensor.extract %d[%c0] : tensor<4xf32>
  %p = arith.cmpf ogt, %x, %zero : f32
  scf.if %p {
    ncclx.barrier over @g["tp"]
  }
  // expected-note @+1 {{which is a result of this 'linalg.generic'}}
  %f = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%s : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%v: f32, %old: f32):
    %w = arith.addf %v, %old : f32
    linalg.yield %w : f32
  } -> tensor<4xf32>
  // expected-note @+1 {{which is a result of this 'tensor.extract'}}
  %y = tensor.extract %f[%c0] : tensor<4xf32>
  // expected-note @+1 {{which is a result of this 'arith.cmpf'}}
  %q = arith.cmpf ogt, %y, %zero : f32
  // expected-note @+1 {{this 'scf.if' depends on a value}}
  scf.if %q {
    // expected-error @+1 {{is under control flow that may differ between ranks}}
    ncclx.barrier over @g["tp"]
  }
  return
}

// -----

ncclx.grid @g ["dp" = 2, "tp" = 4]

// Almost: each group has a sum of its own.
func.func @legality_l3_small_group(%a: tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  // expected-note @+1 {{which is a result of this 'ncclx.all_reduce', and may differ between ranks: its group has 4 of the 8 ranks}}
  %s = ncclx.all_reduce %a sum accumulate f32 order any over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  // expected-note @+1 {{which is a result of this 'tensor.extract'}}
  %x = tensor.extract %s[%c0] : tensor<4xf32>
  // expected-note @+1 {{which is a result of this 'arith.cmpf'}}
  %go = arith.cmpf ogt, %x, %zero : f32
  // expected-note @+1 {{this 'scf.if' depends on a value}}
  scf.if %go {
    // expected-error @+1 {{is under control flow that may differ between ranks}}
    ncclx.barrier over @g["tp"]
  }
  return
}

// -----

ncclx.grid @g ["tp" = 4]

// Almost: every member gets a part of its own.
func.func @legality_l3_scattered(%m: tensor<4xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-note @+1 {{which is a result of this 'ncclx.reduce_scatter', and may differ between ranks}}
  %s = ncclx.reduce_scatter %m dim 0 sum accumulate i64 order any over @g["tp"] : tensor<4xi64> -> tensor<1xi64>
  // expected-note @+1 {{which is a result of this 'tensor.extract'}}
  %x = tensor.extract %s[%c0] : tensor<1xi64>
  // expected-note @+1 {{which is a result of this 'arith.index_cast'}}
  %n = arith.index_cast %x : i64 to index
  // expected-note @+1 {{this 'scf.for' depends on a value}}
  scf.for %i = %c0 to %n step %c1 {
    // expected-error @+1 {{is under control flow that may differ between ranks}}
    ncclx.barrier over @g["tp"]
  }
  return
}

// -----

ncclx.grid @g ["tp" = 4]

// The condition of a loop that goes round differs from the second turn on.
// expected-note @+1 {{which is argument #0, not marked {ncclx.uniform}}}
func.func @legality_l3_while_carried(%a: tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  // expected-note @+2 {{this 'scf.while' depends on a value}}
  // expected-note @+1 {{which is argument #0 of this 'scf.while'}}
  %w = scf.while (%k = %zero) : (f32) -> f32 {
    // expected-note @+1 {{which is a result of this 'arith.cmpf'}}
    %p = arith.cmpf oge, %k, %zero : f32
    scf.condition(%p) %k : f32
  } do {
  ^bb0(%k: f32):
    // expected-error @+1 {{is under control flow that may differ between ranks}}
    ncclx.barrier over @g["tp"]
    // expected-note @+1 {{which is a result of this 'tensor.extract'}}
    %x = tensor.extract %a[%c0] : tensor<4xf32>
    scf.yield %x : f32
  }
  return
}

// -----

ncclx.grid @g ["tp" = 4]

// A check is made by all ranks or by none.
// expected-note @+1 {{which is argument #0, not marked {ncclx.uniform}}}
func.func @legality_l3_assume(%p: i1) {
  // expected-note @+1 {{this 'scf.if' depends on a value}}
  scf.if %p {
    // expected-error @+1 {{is under control flow that may differ between ranks}}
    %u = ncclx.assume_uniform %p : i1
  }
  return
}

// -----

ncclx.grid @g ["tp" = 4]

// What a function returns the same, and almost.
func.func private @same(%a: tensor<1xi1>) -> i1 {
  %c0 = arith.constant 0 : index
  %p = tensor.extract %a[%c0] : tensor<1xi1>
  %u = ncclx.assume_uniform %p : i1
  return %u : i1
}
// expected-note @+1 {{which is argument #0, not marked {ncclx.uniform}}}
func.func private @other(%p: i1) -> i1 {
  return %p : i1
}
func.func @legality_l3_returned(%a: tensor<1xi1>) {
  %true = arith.constant true
  %u = func.call @same(%a) : (tensor<1xi1>) -> i1
  scf.if %u {
    ncclx.barrier over @g["tp"]
  }
  // expected-note @+1 {{which is a result of this 'func.call'}}
  %v = func.call @other(%true) : (i1) -> i1
  // expected-note @+1 {{this 'scf.if' depends on a value}}
  scf.if %v {
    // expected-error @+1 {{is under control flow that may differ between ranks}}
    ncclx.barrier over @g["tp"]
  }
  return
}
