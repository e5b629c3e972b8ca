// A gather in front of a product, and a product in front of a reduction, in parts; each rule of legality refuses, with figures.
// RUN: ncclx-opt %s --ncclx-split-exchanges=machine=%ncclx_src/examples/machines/h100-nvswitch.json --remarks-filter=ncclx-split-exchanges --remark-policy=all 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=WHY < %t.err
// Behind it the scheduler hides all but the first part of the gather, and all but the last of the reduction.
// RUN: ncclx-opt %s --ncclx-split-exchanges="machine=%ncclx_src/examples/machines/h100-nvswitch.json parts=4" --ncclx-overlap=machine=%ncclx_src/examples/machines/h100-nvswitch.json | FileCheck %s --check-prefix=PLACED
// RUN: not ncclx-opt %s --ncclx-split-exchanges 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not ncclx-opt %s --ncclx-split-exchanges="machine=%ncclx_src/examples/machines/h100-nvswitch.json parts=1" 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: not ncclx-opt %s --ncclx-split-exchanges="machine=%ncclx_src/examples/machines/h100-nvswitch.json parts=65" 2>&1 | FileCheck %s --check-prefix=ONE
// NONE: error: ncclx-split-exchanges needs machine=FILE
// ONE: error: ncclx-split-exchanges: parts are 0, or 2 to 64

ncclx.grid @g ["tp" = 8]

// WHY: ExchangeSplit{{.*}}Function=gather{{.*}}are cut: {{.*}} us in {{[2-8]}} parts, {{.*}} us one after the other
// CHECK-LABEL: @gather
// CHECK: tensor.extract_slice %arg0[0, 0]
// CHECK: ncclx.all_gather
// CHECK: linalg.matmul
// CHECK: tensor.expand_shape {{.*}} into tensor<8x{{[0-9]+}}x14336xbf16>
// CHECK: ncclx.all_gather
// CHECK: tensor.collapse_shape {{.*}} into tensor<8192x14336xbf16>
// PLACED-LABEL: @gather
// PLACED: ncclx.start
// PLACED: linalg.matmul
// PLACED: ncclx.await
func.func @gather(%a: tensor<1024x8192xbf16>, %w: tensor<8192x14336xbf16>) -> tensor<8192x14336xbf16> {
  %zero = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<8192x14336xbf16>
  %z = linalg.fill ins(%zero : bf16) outs(%e : tensor<8192x14336xbf16>) -> tensor<8192x14336xbf16>
  %full = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<1024x8192xbf16> -> tensor<8192x8192xbf16>
  %c = linalg.matmul ins(%full, %w : tensor<8192x8192xbf16>, tensor<8192x14336xbf16>) outs(%z : tensor<8192x14336xbf16>) -> tensor<8192x14336xbf16>
  return %c : tensor<8192x14336xbf16>
}

// WHY: ExchangeSplit{{.*}}Function=reduction
// CHECK-LABEL: @reduction
// CHECK: tensor.extract_slice %arg1[0, 0] [14336, {{[0-9]+}}]
// CHECK: linalg.matmul
// CHECK: ncclx.reduce_scatter
// CHECK: tensor.insert_slice
// CHECK: ncclx.reduce_scatter
// PLACED-LABEL: @reduction
// PLACED: ncclx.start
// PLACED: linalg.matmul
// PLACED: ncclx.await
func.func @reduction(%a: tensor<8192x14336xbf16>, %w: tensor<14336x8192xbf16>) -> tensor<1024x8192xbf16> {
  %e = tensor.empty() : tensor<8192x8192xbf16>
  %c = linalg.matmul ins(%a, %w : tensor<8192x14336xbf16>, tensor<14336x8192xbf16>) outs(%e : tensor<8192x8192xbf16>) -> tensor<8192x8192xbf16>
  %r = ncclx.reduce_scatter %c dim 0 sum accumulate bf16 order rank over @g["tp"] : tensor<8192x8192xbf16> -> tensor<1024x8192xbf16>
  return %r : tensor<1024x8192xbf16>
}

// WHY: ExchangeWhole{{.*}}Function=summed{{.*}}the product sums over the dimension that is gathered
func.func @summed(%a: tensor<1024x8192xbf16>, %x: tensor<4096x8192xbf16>) -> tensor<4096x8192xbf16> {
  %e = tensor.empty() : tensor<4096x8192xbf16>
  %full = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<1024x8192xbf16> -> tensor<8192x8192xbf16>
  %c = linalg.matmul ins(%x, %full : tensor<4096x8192xbf16>, tensor<8192x8192xbf16>) outs(%e : tensor<4096x8192xbf16>) -> tensor<4096x8192xbf16>
  return %c : tensor<4096x8192xbf16>
}
// WHY: ExchangeWhole{{.*}}Function=two_users{{.*}}it has 2 users
func.func @two_users(%a: tensor<1024x8192xbf16>, %w: tensor<8192x8192xbf16>) -> (tensor<8192x8192xbf16>, tensor<8192x8192xbf16>) {
  %e = tensor.empty() : tensor<8192x8192xbf16>
  %full = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<1024x8192xbf16> -> tensor<8192x8192xbf16>
  %c = linalg.matmul ins(%full, %w : tensor<8192x8192xbf16>, tensor<8192x8192xbf16>) outs(%e : tensor<8192x8192xbf16>) -> tensor<8192x8192xbf16>
  return %c, %full : tensor<8192x8192xbf16>, tensor<8192x8192xbf16>
}
// WHY: ExchangeWhole{{.*}}Function=uneven{{.*}}its 8190 rows are not 8 whole shards of 1024
func.func @uneven(%a: tensor<1024x8192xbf16>, %w: tensor<8192x8192xbf16>) -> tensor<8190x8192xbf16> {
  %e = tensor.empty() : tensor<8190x8192xbf16>
  %full = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<1024x8192xbf16> -> tensor<8190x8192xbf16>
  %c = linalg.matmul ins(%full, %w : tensor<8190x8192xbf16>, tensor<8192x8192xbf16>) outs(%e : tensor<8190x8192xbf16>) -> tensor<8190x8192xbf16>
  return %c : tensor<8190x8192xbf16>
}
// WHY: ExchangeWhole{{.*}}Function=adds{{.*}}the product adds to a tensor
func.func @adds(%a: tensor<1024x8192xbf16>, %w: tensor<8192x8192xbf16>, %to: tensor<8192x8192xbf16>) -> tensor<8192x8192xbf16> {
  %full = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<1024x8192xbf16> -> tensor<8192x8192xbf16>
  %c = linalg.matmul ins(%full, %w : tensor<8192x8192xbf16>, tensor<8192x8192xbf16>) outs(%to : tensor<8192x8192xbf16>) -> tensor<8192x8192xbf16>
  return %c : tensor<8192x8192xbf16>
}
// Latency decides: parts of a small gather take longer than the whole.
// WHY: ExchangeWhole{{.*}}Function=small{{.*}} us in {{[2-8]}} parts, {{.*}} us one after the other
func.func @small(%a: tensor<16x512xbf16>, %w: tensor<512x512xbf16>) -> tensor<128x512xbf16> {
  %e = tensor.empty() : tensor<128x512xbf16>
  %full = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<16x512xbf16> -> tensor<128x512xbf16>
  %c = linalg.matmul ins(%full, %w : tensor<128x512xbf16>, tensor<512x512xbf16>) outs(%e : tensor<128x512xbf16>) -> tensor<128x512xbf16>
  return %c : tensor<128x512xbf16>
}
// A schedule of the user's own carries the gather: its parts would be carried by something else.
// WHY: ExchangeWhole{{.*}}Function=scheduled{{.*}}a schedule of its own carries it
ctran.program @mine grid ["tp" = 8] {
^bb0(%entry: !ctran.token):
  ctran.return %entry : !ctran.token
}
func.func @scheduled(%a: tensor<1024x8192xbf16>, %w: tensor<8192x14336xbf16>) -> tensor<8192x14336xbf16> {
  %e = tensor.empty() : tensor<8192x14336xbf16>
  %full = ncclx.all_gather %a dim 0 over @g["tp"] {ncclx.schedule = @mine} : tensor<1024x8192xbf16> -> tensor<8192x8192xbf16>
  %c = linalg.matmul ins(%full, %w : tensor<8192x8192xbf16>, tensor<8192x14336xbf16>) outs(%e : tensor<8192x14336xbf16>) -> tensor<8192x14336xbf16>
  return %c : tensor<8192x14336xbf16>
}
// WHY: ExchangeWhole{{.*}}Function=in_loop{{.*}}the product runs another number of times
func.func @in_loop(%a: tensor<1024x8192xbf16>, %w: tensor<8192x8192xbf16>, %to: tensor<8192x8192xbf16>) -> tensor<8192x8192xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %full = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<1024x8192xbf16> -> tensor<8192x8192xbf16>
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%x = %to) -> tensor<8192x8192xbf16> {
    %e = tensor.empty() : tensor<8192x8192xbf16>
    %c = linalg.matmul ins(%full, %w : tensor<8192x8192xbf16>, tensor<8192x8192xbf16>) outs(%e : tensor<8192x8192xbf16>) -> tensor<8192x8192xbf16>
    %s = linalg.add ins(%x, %c : tensor<8192x8192xbf16>, tensor<8192x8192xbf16>) outs(%e : tensor<8192x8192xbf16>) -> tensor<8192x8192xbf16>
    scf.yield %s : tensor<8192x8192xbf16>
  }
  return %r : tensor<8192x8192xbf16>
}

// WHY: ExchangeWhole{{.*}}Function=batched{{.*}}it is of rank 3, a product's operands have rank 2
func.func @batched(%a: tensor<2x512x8192xbf16>, %w: tensor<2x8192x8192xbf16>) -> tensor<2x4096x8192xbf16> {
  %full = ncclx.all_gather %a dim 1 over @g["tp"] : tensor<2x512x8192xbf16> -> tensor<2x4096x8192xbf16>
  %e = tensor.empty() : tensor<2x4096x8192xbf16>
  %c = linalg.batch_matmul ins(%full, %w : tensor<2x4096x8192xbf16>, tensor<2x8192x8192xbf16>) outs(%e : tensor<2x4096x8192xbf16>) -> tensor<2x4096x8192xbf16>
  return %c : tensor<2x4096x8192xbf16>
}

// Groups of 5 and of 3 members whose shards are one row each: the last members have padding alone.
// WHY: ExchangeWhole{{.*}}Function=unequal{{.*}}its groups differ in size
func.func @unequal(%a: tensor<1x8192xbf16>, %w: tensor<8192x8192xbf16>) -> tensor<2x8192xbf16> {
  %full = ncclx.all_gather %a dim 0 over @g groups [[0, 1, 2, 3, 4], [5, 6, 7]] : tensor<1x8192xbf16> -> tensor<2x8192xbf16>
  %e = tensor.empty() : tensor<2x8192xbf16>
  %c = linalg.matmul ins(%full, %w : tensor<2x8192xbf16>, tensor<8192x8192xbf16>) outs(%e : tensor<2x8192xbf16>) -> tensor<2x8192xbf16>
  return %c : tensor<2x8192xbf16>
}

// WHY: ExchangeWhole{{.*}}Function=no_product{{.*}}its user is no product of two matrices
func.func @no_product(%a: tensor<1024x8192xbf16>, %b: tensor<8192x8192xbf16>) -> tensor<8192x8192xbf16> {
  %full = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<1024x8192xbf16> -> tensor<8192x8192xbf16>
  %e = tensor.empty() : tensor<8192x8192xbf16>
  %c = linalg.add ins(%full, %b : tensor<8192x8192xbf16>, tensor<8192x8192xbf16>) outs(%e : tensor<8192x8192xbf16>) -> tensor<8192x8192xbf16>
  return %c : tensor<8192x8192xbf16>
}

// What is reduced is needed whole as well: its rows may not be made in pieces.
// WHY: ExchangeWhole{{.*}}Function=kept{{.*}}its operand is no product of two matrices that it alone uses
func.func @kept(%a: tensor<8192x8192xbf16>, %w: tensor<8192x8192xbf16>) -> (tensor<1024x8192xbf16>, tensor<8192x8192xbf16>) {
  %e = tensor.empty() : tensor<8192x8192xbf16>
  %c = linalg.matmul ins(%a, %w : tensor<8192x8192xbf16>, tensor<8192x8192xbf16>) outs(%e : tensor<8192x8192xbf16>) -> tensor<8192x8192xbf16>
  %mine = ncclx.reduce_scatter %c dim 0 sum accumulate bf16 order any over @g["tp"] : tensor<8192x8192xbf16> -> tensor<1024x8192xbf16>
  return %mine, %c : tensor<1024x8192xbf16>, tensor<8192x8192xbf16>
}
