// RUN: ncclx-opt %s --ncclx-verify-legality --split-input-file --verify-diagnostics

// expected-error @+1 {{has ncclx.sizes, but only functions may}}
module attributes {ncclx.sizes = {n = [0, 4]}} {}

// -----

// expected-error @+1 {{ncclx.sizes must be a dictionary of ranges, but is [0, 4]}}
func.func @sizes_c1_list(%a: tensor<?xf32>) attributes {ncclx.sizes = [0, 4]} { return }

// -----

// expected-error @+1 {{size 'n' must be [least, greatest] or [least, greatest, multiple], but is 4 : i64}}
func.func @sizes_c1_number(%a: tensor<?xf32> {ncclx.dims = ["n"]}) attributes {ncclx.sizes = {n = 4}} { return }

// -----

// expected-error @+1 {{size 'n' must be [least, greatest] or [least, greatest, multiple], but is [0 : i32, 4 : i32]}}
func.func @sizes_c1_type(%a: tensor<?xf32> {ncclx.dims = ["n"]}) attributes {ncclx.sizes = {n = [0 : i32, 4 : i32]}} { return }

// -----

// expected-error @+1 {{size 'n' is from 5 to 4, expected 0 <= least <= greatest}}
func.func @sizes_c2_order(%a: tensor<?xf32> {ncclx.dims = ["n"]}) attributes {ncclx.sizes = {n = [5, 4]}} { return }

// -----

// expected-error @+1 {{size 'n' is from -1 to 4, expected 0 <= least <= greatest}}
func.func @sizes_c2_negative(%a: tensor<?xf32> {ncclx.dims = ["n"]}) attributes {ncclx.sizes = {n = [-1, 4]}} { return }

// -----

// expected-error @+1 {{size 'n' is a multiple of 0, expected at least 1, and both ends to be one}}
func.func @sizes_c2_multiple(%a: tensor<?xf32> {ncclx.dims = ["n"]}) attributes {ncclx.sizes = {n = [0, 4, 0]}} { return }

// -----

// expected-error @+1 {{size 'n' is a multiple of 4, expected at least 1, and both ends to be one}}
func.func @sizes_c2_end(%a: tensor<?xf32> {ncclx.dims = ["n"]}) attributes {ncclx.sizes = {n = [0, 6, 4]}} { return }

// -----

// expected-error @+1 {{argument #0: ncclx.dims names 1 sizes, but 'tensor<?x4x?xf32>' has 2 open ones}}
func.func @sizes_c3_count(%a: tensor<?x4x?xf32> {ncclx.dims = ["n"]}) attributes {ncclx.sizes = {n = [0, 4]}} { return }

// -----

// expected-error @+1 {{argument #0: ncclx.dims names 0 sizes, but 'tensor<4xf32>' has 0 open ones}}
func.func @sizes_c3_static(%a: tensor<4xf32> {ncclx.dims = []}) { return }

// -----

// expected-error @+1 {{argument #0: ncclx.dims names 1 sizes, but 'memref<?xf32>' has 0 open ones}}
func.func @sizes_c3_memref(%a: memref<?xf32> {ncclx.dims = ["n"]}) { return }

// -----

// expected-error @+1 {{argument #0: ncclx.dims must be a list of names, but is [1]}}
func.func @sizes_c3_names(%a: tensor<?xf32> {ncclx.dims = [1]}) attributes {ncclx.sizes = {}} { return }

// -----

// expected-error @+1 {{argument #0: ncclx.dims names "m", which has no range in ncclx.sizes}}
func.func @sizes_c4_range(%a: tensor<?x?xf32> {ncclx.dims = ["n", "m"]}) attributes {ncclx.sizes = {n = [0, 4]}} { return }

// -----

// expected-error @+1 {{argument #0: ncclx.dims names "n", which has no range in ncclx.sizes}}
func.func @sizes_c4_no_sizes(%a: tensor<?xf32> {ncclx.dims = ["n"]}) { return }

// -----

// expected-error @+1 {{size 'm' is that of no argument's dimension}}
func.func @sizes_c5_unused(%a: tensor<?xf32> {ncclx.dims = ["n"]}) attributes {ncclx.sizes = {m = [0, 1], n = [0, 4]}} { return }

// -----

// expected-error @+1 {{argument #1 of type 'tensor<?xf32>' has sizes that are not known, expected ncclx.dims to name each and ncclx.sizes to give its range}}
func.func @sizes_c6_partly(%a: tensor<?xf32> {ncclx.dims = ["n"]}, %b: tensor<?xf32>) attributes {ncclx.sizes = {n = [0, 4]}} { return }

// -----

ncclx.grid @g ["tp" = 4]
// expected-error @+1 {{argument #0 of type 'tensor<?xf32>' has sizes that are not known, expected ncclx.dims to name each and ncclx.sizes to give its range}}
func.func @sizes_c6_no_range(%a: tensor<?xf32>) -> tensor<?xf32> {
  %r = ncclx.all_reduce %a sum accumulate f32 order any over @g["tp"] : tensor<?xf32> -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

ncclx.grid @g ["tp" = 4]
// Only the sizes of arguments are agreed on: this one is of a tensor that a number of this rank's made.
func.func @legality_l3_size(%a: tensor<?xf32> {ncclx.dims = ["n"]}, %i: index) attributes {ncclx.sizes = {n = [0, 4]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-note @+1 {{which is a result of this 'tensor.empty', and may differ between ranks}}
  %e = tensor.empty(%i) : tensor<?xf32>
  // expected-note @+1 {{which is a result of this 'tensor.dim'}}
  %n = tensor.dim %e, %c0 : tensor<?xf32>
  // expected-note @+1 {{this 'scf.for' depends on a value}}
  scf.for %k = %c0 to %n step %c1 {
    // expected-error @+1 {{is under control flow that may differ between ranks}}
    ncclx.barrier over @g["tp"]
  }
  return
}
