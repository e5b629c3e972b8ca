// The stage's own waits and signals are what makes the windows of stages right: each that is taken away is missed.
// RUN: ncclx-opt %s --ncclx-split-branches | ncclx-opt --ncclx-bufferize --convert-ncclx-to-ctran --ctran-verify -o /dev/null
// RUN: ncclx-opt %s --ncclx-split-branches | sed -E '/ncclx.wait .* shift 1 count/d' \
// RUN:   | not ncclx-opt --ncclx-bufferize --convert-ncclx-to-ctran --ctran-verify -o /dev/null 2>&1 | FileCheck %s
// RUN: ncclx-opt %s --ncclx-split-branches | sed -E '/ncclx.wait .* shift 2 count/d' \
// RUN:   | not ncclx-opt --ncclx-bufferize --convert-ncclx-to-ctran --ctran-verify -o /dev/null 2>&1 | FileCheck %s
// RUN: ncclx-opt %s --ncclx-split-branches | sed -E '/ncclx.signal .* shift 2 :/d' \
// RUN:   | not ncclx-opt --ncclx-bufferize --convert-ncclx-to-ctran --ctran-verify -o /dev/null 2>&1 | FileCheck %s --check-prefix=FOREVER

// CHECK: error: {{.*}}race
// FOREVER: error: 'ncclx.wait' op waits for ever

ncclx.grid @g ["x" = 4]
func.func @windows(%a: tensor<1xf32>, %init: tensor<4xf32>, %n: tensor<1xi32> {ncclx.uniform}) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = tensor.extract %n[%c0] : tensor<1xi32>
  %turns = arith.index_cast %i : i32 to index
  %odd = arith.trunci %i : i32 to i1
  %w = ncclx.window over @g["x"] init(%init : tensor<4xf32>) : !ncclx.window<tensor<4xf32>>
  scf.for %k = %c0 to %turns step %c1 {
    ncclx.put %a into %w[0] shift 1 : tensor<1xf32> into !ncclx.window<tensor<4xf32>>
    ncclx.signal %w shift 1 : !ncclx.window<tensor<4xf32>>
    ncclx.put %a into %w[1] shift 2 : tensor<1xf32> into !ncclx.window<tensor<4xf32>>
    %u = ncclx.assume_uniform %odd : i1
    ncclx.wait %w shift 1 count 1 : !ncclx.window<tensor<4xf32>>
  }
  %r = ncclx.get %w[0] : !ncclx.window<tensor<4xf32>> -> tensor<4xf32>
  return %r : tensor<4xf32>
}
