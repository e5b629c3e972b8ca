// RUN: ncclx-opt %s --ncclx-specialize-sizes=sizes=n=5 --split-input-file --verify-diagnostics

// expected-error @+1 {{size 'n' (dimension 1 of argument 1) is 5, expected 6 to 9}}
func.func @outside(%a: tensor<8xf32>, %b: tensor<4x?xf32> {ncclx.dims = ["n"]}) -> tensor<4x?xf32>
    attributes {ncclx.sizes = {n = [6, 9]}} { return %b : tensor<4x?xf32> }

// -----

// expected-error @+1 {{size 'n' (dimension 0 of argument 0) is 5, expected 0 to 64, a multiple of 4}}
func.func @no_multiple(%b: tensor<?xf32> {ncclx.dims = ["n"]}) -> tensor<?xf32>
    attributes {ncclx.sizes = {n = [0, 64, 4]}} { return %b : tensor<?xf32> }

// -----

// expected-error @+1 {{leaves size 'm' (dimension 0 of argument 0) open, but no value is given}}
func.func @no_value(%a: tensor<?x?xf32> {ncclx.dims = ["m", "n"]})
    attributes {ncclx.sizes = {m = [0, 9], n = [0, 9]}} { return }

// -----

// expected-error @+1 {{sizes: no function leaves a size 'n' open}}
module {}

// -----

// A size that is wrong for the graph, though in its range, is refused where it is wrong.
ncclx.grid @g ["tp" = 2]
// expected-error @+1 {{the graph cannot be made for n = 5}}
func.func @does_not_divide(%a: tensor<?xf32> {ncclx.dims = ["n"]}) -> tensor<?xf32>
    attributes {ncclx.sizes = {n = [0, 64]}} {
  // expected-error @+1 {{splits dimension 0 of size 5 among 2 members, which does not divide}}
  %r = ncclx.all_to_all %a split 0 concat 0 over @g["tp"] : tensor<?xf32> -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

ncclx.grid @g ["tp" = 2]
// expected-error @+1 {{the graph cannot be made for n = 5}}
func.func @known_size_differs(%a: tensor<?xf32> {ncclx.dims = ["n"]}) -> tensor<4xf32>
    attributes {ncclx.sizes = {n = [0, 64]}} {
  // expected-error @+1 {{cast}}
  %c = tensor.cast %a : tensor<?xf32> to tensor<4xf32>
  %r = ncclx.all_reduce %c sum accumulate f32 order any over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

ncclx.grid @g ["tp" = 2]
// expected-error @+1 {{the graph cannot be made for n = 5}}
func.func @depends_on_data(%a: tensor<?xf32> {ncclx.dims = ["n"]}, %i: index) -> tensor<?xf32>
    attributes {ncclx.sizes = {n = [0, 64]}} {
  %s = tensor.extract_slice %a[0] [%i] [1] : tensor<?xf32> to tensor<?xf32>
  // expected-error @+1 {{has a size that does not follow from the arguments': 'tensor<?xf32>'}}
  %r = ncclx.all_reduce %s sum accumulate f32 order any over @g["tp"] : tensor<?xf32> -> tensor<?xf32>
  return %a : tensor<?xf32>
}

// -----

// expected-error @+1 {{the graph cannot be made for n = 5}}
func.func @grows(%a: tensor<?xf32> {ncclx.dims = ["n"]}, %zero: f32) -> tensor<?xf32>
    attributes {ncclx.sizes = {n = [0, 64]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  // expected-error @+1 {{gives a value whose size is not the same on every way: 'tensor<5xf32>' and 'tensor<6xf32>'}}
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %a) -> tensor<?xf32> {
    %y = tensor.pad %x low[0] high[%c1] {
    ^bb0(%k: index):
      tensor.yield %zero : f32
    } : tensor<?xf32> to tensor<?xf32>
    scf.yield %y : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}

// -----

ncclx.grid @g ["tp" = 2]
// expected-error @+1 {{the graph cannot be made for n = 5}}
func.func @rows_unknown(%a: tensor<?xf32> {ncclx.dims = ["n"]}) -> tensor<?xf32>
    attributes {ncclx.sizes = {n = [0, 64]}} {
  // expected-error @+1 {{has counts, which do not say how many rows the result has: expected a destination, into(...)}}
  %r = ncclx.all_to_all_v %a dim 0 counts dense<1> : tensor<2x2xi64> over @g["tp"] : tensor<?xf32> -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

func.func private @endless(%a: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @+1 {{calls a function with open sizes that is being called already}}
  %r = call @endless(%a) : (tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
// expected-error @+1 {{the graph cannot be made for n = 5}}
func.func @recursive(%a: tensor<?xf32> {ncclx.dims = ["n"]}) -> tensor<?xf32>
    attributes {ncclx.sizes = {n = [0, 64]}} {
  %r = call @endless(%a) : (tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

// expected-error @+1 {{the graph cannot be made for n = 5}}
func.func @two_ranges(%a: tensor<?xf32> {ncclx.dims = ["n"]}) -> tensor<?xf32>
    attributes {ncclx.sizes = {n = [0, 64]}} {
  // expected-error @+1 {{calls @inner, which has ncclx.sizes of its own: only the function that is compiled may}}
  %r = call @inner(%a) : (tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func private @inner(%a: tensor<?xf32> {ncclx.dims = ["k"]}) -> tensor<?xf32>
    attributes {ncclx.sizes = {k = [0, 64]}} { return %a : tensor<?xf32> }

// -----

// expected-error @+2 {{the graph cannot be made for n = 5}}
// expected-error @+1 {{needs a body of one block, through which sizes are followed}}
func.func private @declared(%a: tensor<?xf32> {ncclx.dims = ["n"]}) attributes {ncclx.sizes = {n = [0, 64]}}

// -----

ncclx.grid @g ["tp" = 2]
func.func private @external(%a: tensor<?xf32>) -> tensor<?xf32>
// expected-error @+2 {{the graph cannot be made for n = 5}}
// expected-error @+1 {{result #0 of type 'tensor<?xf32>' has a size that does not follow from the arguments'}}
func.func @unknown(%a: tensor<?xf32> {ncclx.dims = ["n"]}) -> tensor<?xf32> attributes {ncclx.sizes = {n = [0, 64]}} {
  %0 = ncclx.call @external(%a) {flops = 1, bytes = 1, sms = 1} : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
